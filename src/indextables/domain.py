"""Sets of values per column, as query engines hand them to the pruner."""

from indextables.core.sets.column_domain import ColumnDomain
from indextables.core.sets.domain import Bound, Domain, Marker, Range

__all__ = ["Bound", "ColumnDomain", "Domain", "Marker", "Range"]
