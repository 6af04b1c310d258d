"""Sets of values per column, as query engines hand them to the pruner."""

from indextables.core.domain.column_domain import ColumnDomain
from indextables.core.domain.domain import Bound, Domain, Marker, Range

__all__ = ["Bound", "ColumnDomain", "Domain", "Marker", "Range"]
