"""How tests are shared among processes: a file is run by one of them, but for long tests that any process may run."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

LONG = (
    "test_broken_constraints_are_found_or_do_no_harm",
    "test_plans_give_the_bag_of_the_query",
    "test_views_equal_their_queries_after_random_changes",
)


class FilesTogether(LoadScopeScheduling):
    """Files with many tests first, long tests one by one at the end."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        return nodeid if test.startswith(LONG) else file
