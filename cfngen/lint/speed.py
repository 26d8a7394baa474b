"""Replaces the functions in which cfn-lint spends half of its time by ones that do the same faster.

For each property of a template, cfn-lint makes a dozen slightly changed copies of its validators, contexts and paths.
Each copy passes all fields through a dataclass's constructor, which looks up their names and defaults again; here the
attributes are copied at once. For each resource and function it also defines a dataclass anew, which Python compiles
from text, although the class depends only on the keywords that it validates; here the same class is used again. And
for each property it looks through all rules for those of the property's path, which are looked up here.

They were written for certain sources of cfn-lint. Any other cfn-lint runs unchanged, and takes twice as long. After an
upgrade, compare its functions with these, and add the digests of its files. The verdicts are the same: a drill compares
them with those of the cfn-lint command. docs/develop/development.md says what of this cfn-lint itself could take over.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# SHA-256 of the modules whose functions are replaced, by the versions of cfn-lint that have them.
_KNOWN_CONTEXT = {"785e6ca7d57cde01cc8aed6d398a192debdfa611831f2a801e7f27de2be31aff": "1.58.0"}
_KNOWN_VALIDATORS = {"6494508f68508e392b0caff55d51ce061d2621dd2edaf9ed2621456ebdad3605": "1.58.0"}
_KNOWN_RULE_OF_KEYWORDS = {"8e926d507ae4a7712a48f10246521c75fe13f4f45f6d6e90d1bb60d1c914ea9a": "1.58.0"}

# cfn-lint's rules ask for some 200 different classes; more would mean that some rule never asks for the same one again.
_MAX_CLASSES = 1000


def speed_up() -> bool:
    """Replace functions of cfn-lint itself; return whether it is a cfn-lint whose functions are known.

    To do so twice does nothing more. It must be done before rules are loaded, since they import these functions.
    """
    from cfnlint.context import context
    from cfnlint.jsonschema import validators

    if getattr(validators.create, "keeps_classes", False):
        return True
    if _digest(context.__file__) not in _KNOWN_CONTEXT or _digest(validators.__file__) not in _KNOWN_VALIDATORS:
        return False
    context.Context.evolve = _evolve_context
    context.Path.evolve = _evolve
    context.Path.descend = _descend_with_names(frozenset(context.FUNCTIONS))
    validators.CfnTemplateValidator.evolve = _evolve_validator
    validators.StandardValidator.evolve = _evolve_validator
    validators.create = _create_once(validators.create)
    return True


def speed_up_rules(rules: Mapping[str, Any]) -> bool:
    """Replace functions of cfn-lint's rules; return whether these are rules whose functions are known.

    Args:
        rules: the rules by their id. cfn-lint loads their files anew for each collection, so each has its own classes.
    """
    rule_class = type(rules["E1101"]) if "E1101" in rules else object
    function = getattr(rule_class, "cfnLint", None)
    if function is None or _digest(function.__code__.co_filename) not in _KNOWN_RULE_OF_KEYWORDS:
        return False
    _look_up_keywords(rule_class)
    return True


def _digest(file: str) -> str:
    """Return the SHA-256 of a module's file; of nothing, if it cannot be read."""
    try:
        source = Path(file).read_bytes()
    except OSError:
        source = b""
    return hashlib.sha256(source).hexdigest()


def _evolve(self: Any, **changes: Any) -> Any:
    """Return a copy of an object with other values of some attributes, without calling the constructor."""
    changed = object.__new__(self.__class__)
    # A frozen dataclass refuses to set its attributes, but not to fill its dictionary.
    changed.__dict__.update(self.__dict__)
    changed.__dict__.update(changes)
    return changed


def _evolve_context(self: Any, **changes: Any) -> Any:
    """Do as `Context.evolve`: values of references are added to those known, all else is replaced."""
    if "ref_values" in changes:
        changes["ref_values"] = {**self.ref_values, **changes["ref_values"]}
    changed = _evolve(self, **changes)
    if "resources" in changes:
        # The names of modules are cached, and come from the resources.
        changed.__dict__.pop("module_names", None)
    return changed


def _evolve_validator(self: Any, **changes: Any) -> Any:
    """Do as `Validator.evolve`: a validator without a context or a resolver makes its own."""
    changed = _evolve(self, **changes)
    if changed.context is None or changed.resolver is None:
        changed.__post_init__()
    return changed


def _descend_with_names(functions: frozenset[str]) -> Any:
    """Return a replacement of `Path.descend`, which appends to the parts of a path that are passed and not None."""

    def descend(self: Any, **parts: Any) -> Any:
        cfn_path = parts.get("cfn_path")
        if cfn_path in functions:
            raise ValueError(f"{cfn_path!r} cannot be in 'cfn_path'")
        if isinstance(cfn_path, int):
            raise ValueError(f"{cfn_path!r} cannot be an integer")  # noqa: TRY004
        changes = {}
        for name, part in parts.items():
            if part is not None:
                longer = getattr(self, name).copy()
                longer.append(part)
                changes[name] = longer
        return _evolve(self, **changes)

    return descend


def _create_once(create: Any) -> Any:
    """Return a replacement of cfn-lint's `create`, which defines each class of validators once."""
    classes: dict[object, Any] = {}

    def create_once(
        validators: Mapping[str, Any] | None = None,
        function_filter: Any = None,
        fn_resolvers: Mapping[str, Any] | None = None,
    ) -> Any:
        # The filter is a dataclass without a hash; its text has all of its fields.
        key = (tuple((validators or {}).items()), repr(function_filter), tuple((fn_resolvers or {}).items()))
        if key not in classes:
            if len(classes) >= _MAX_CLASSES:
                classes.clear()
            classes[key] = create(validators=validators, function_filter=function_filter, fn_resolvers=fn_resolvers)
            classes[key].evolve = _evolve_validator
        return classes[key]

    create_once.keeps_classes = True  # type: ignore[attr-defined]
    return create_once


def _look_up_keywords(rule_class: Any) -> None:
    """Replace `cfnLint` of a class of rules, which applies all its child rules that have a keyword."""
    from cfnlint.jsonschema._utils import Unset

    initialize = rule_class.initialize

    def initialize_and_forget(self: Any, cfn: Any) -> None:
        # cfn-lint calls this before it lints a template, and gives the rule its child rules afterwards.
        self.rules_by_keyword = None
        initialize(self, cfn)

    def rules_by_keyword(self: Any) -> Mapping[str, list[Any]]:
        if getattr(self, "rules_by_keyword", None) is None:
            self.rules_by_keyword = defaultdict(list)
            for rule in self.child_rules.values():
                for keyword in rule.keywords if rule is not None and rule.id else ():
                    self.rules_by_keyword[keyword].append(rule)
        return self.rules_by_keyword  # type: ignore[no-any-return]

    def cfn_lint(self: Any, validator: Any, keywords: Any, instance: Any, schema: Any) -> Iterator[Any]:
        by_keyword = rules_by_keyword(self)
        applied = [(keyword, rule) for keyword in keywords for rule in by_keyword.get(keyword, ())]
        if not applied:
            return
        validator = validator.evolve(
            function_filter=validator.function_filter.evolve(add_cfn_lint_keyword=False),
        )
        for keyword, rule in applied:
            for error in rule.validate(validator, keyword, instance, schema):
                if error.rule is None and isinstance(error.validator, Unset):
                    error.rule = rule
                yield error

    rule_class.initialize = initialize_and_forget
    rule_class.cfnLint = cfn_lint
