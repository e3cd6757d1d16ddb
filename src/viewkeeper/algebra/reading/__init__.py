"""How a bound query becomes a tree: its sources, its subqueries, its groups, its order."""
