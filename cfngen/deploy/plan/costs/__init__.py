"""What a cluster costs: components, differences, the monthly bill, and what a pause leaves."""
