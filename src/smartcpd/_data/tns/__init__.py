"""Sparse tensors as text: the ``.tns`` files of FROSTT, plain or compressed with gzip.

A line is an entry, ``i1 i2 ... iN value``, its indices counting from 1. Columns are parted by
blanks or commas; ``#`` or ``%``, first on a line or after a blank, starts a comment. The entries
may follow a header:

* none: the shape is the largest index of each mode;
* the comment ``# shape: d1 ... dN``, as `write_tns` writes it;
* a line ``N`` and a line ``d1 ... dN`` (ParTI, SPLATT's relatives), with the number of entries at
  the end of the second line, on a third, or nowhere;
* the same after a line ``sptensor`` (Tensor Toolbox, pyttb);
* ``N`` and the number of entries on a line, then ``d1 ... dN`` (MLIR's "extended FROSTT").

A file is read in blocks of whole lines, parsed by several threads and joined in order, so that
memory holds the result and a few blocks, and the number of threads changes nothing.
"""

from smartcpd._data.tns.reading import read_tns
from smartcpd._data.tns.writing import write_tns

__all__ = ["read_tns", "write_tns"]
