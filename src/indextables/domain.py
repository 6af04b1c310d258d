"""Sets of values per column, in which a query engine tells the pruner what it wants."""

from indextables.core.domain.column_domain import ColumnDomain
from indextables.core.domain.domain import Bound, Domain, Marker, Range

__all__ = ["Bound", "ColumnDomain", "Domain", "Marker", "Range"]
