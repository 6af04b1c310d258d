"""The table as a Polars LazyFrame."""

from indextables.engines.optional import require

require("polars")

from indextables.engines.polars.expressions import predicate_of  # noqa: E402
from indextables.engines.polars.scan import scan_polars  # noqa: E402

__all__ = ["predicate_of", "scan_polars"]
