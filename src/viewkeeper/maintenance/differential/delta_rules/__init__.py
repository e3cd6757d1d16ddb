"""How a change passes each node: one file per node."""

from viewkeeper.maintenance.differential.delta_rules import (
    derived,
    generate,
    group,
    inner_join,
    outer_join,
    project,
    scan,
    semi_join,
    set_operation,
    top_rows,
    window,
)

__all__ = [
    "derived",
    "generate",
    "group",
    "inner_join",
    "outer_join",
    "project",
    "scan",
    "semi_join",
    "set_operation",
    "top_rows",
    "window",
]
