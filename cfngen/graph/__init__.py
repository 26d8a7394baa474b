"""The picture of a cluster, drawn from its templates.

    templates -> reading -> Picture -> layout -> SVG, HTML
                                    -> Mermaid, DOT

Like `templates`, this package makes no network call and reads no clock: the same templates give the same bytes.
"""
