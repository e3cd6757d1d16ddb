"""Random views in Spark SQL that mean the same in DuckDB."""

from viewkeeper.testing.views.draft import CONSTRUCTS as CONSTRUCTS
from viewkeeper.testing.views.queries import RandomView as RandomView
from viewkeeper.testing.views.queries import random_view as random_view
