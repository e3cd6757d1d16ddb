"""Random schemas, views and changes, and plans run on DuckDB: is a maintained view what its query gives?

Needs DuckDB: `pip install "viewkeeper[testing]"`.
"""

from viewkeeper.testing.agreement import Disagreement as Disagreement
from viewkeeper.testing.agreement import Outcome as Outcome
from viewkeeper.testing.bags import BagDifference as BagDifference
from viewkeeper.testing.bags import compare_bags as compare_bags
from viewkeeper.testing.cases import Case as Case
from viewkeeper.testing.cases import case_for_view as case_for_view
from viewkeeper.testing.cases import case_of as case_of
from viewkeeper.testing.cases import random_case as random_case
from viewkeeper.testing.fuzzing import FuzzReport as FuzzReport
from viewkeeper.testing.fuzzing import fuzz_view as fuzz_view
from viewkeeper.testing.kept_agreement import check_case as check_case
from viewkeeper.testing.kept_agreement import check_case_with_kept_groups as check_case_with_kept_groups
from viewkeeper.testing.shrinking import shrunk as shrunk
from viewkeeper.testing.tables import Schema as Schema
from viewkeeper.testing.tables import read_schema as read_schema
