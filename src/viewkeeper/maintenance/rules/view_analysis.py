"""The analysis of a view: of its query as it is read, or, if that has subqueries under OR or NOT, of its branches."""

from __future__ import annotations

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.algebra.nodes import Project
from viewkeeper.facts.declared import Declarations
from viewkeeper.facts.safety.analyse import analyse_branches, analyse_query
from viewkeeper.facts.safety.selects import Unread
from viewkeeper.facts.safety.verdicts import ViewAnalysis
from viewkeeper.maintenance.view_definition import ViewDefinition


def analysis_of(view: ViewDefinition, declared: Declarations) -> ViewAnalysis:
    """Everything that is known of a view whose query can be read."""
    assert isinstance(view.algebra, Project)
    found = analyse_query(view.algebra, view.columns, declared)
    if found.unread is None:
        return found
    branches = view.branches
    if isinstance(branches.query, OutsideAlgebra):
        core = found if branches.core is None else analyse_query(branches.core, view.columns, declared)
        return ViewAnalysis(Unread(branches.query.reason), core.duplicates)
    return analyse_branches(branches.query, branches.core, view.columns, declared)
