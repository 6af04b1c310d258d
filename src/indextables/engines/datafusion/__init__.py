"""The table in DataFusion: `register` makes it queryable, and `sql` skips files by every condition of a query."""

from indextables.engines.optional import require

require("datafusion")

from indextables.engines.datafusion.tables import register, sql  # noqa: E402

__all__ = ["register", "sql"]
