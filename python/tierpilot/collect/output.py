"""The table that a run writes, and the description of its machine beside it: both get their names when they are
whole."""

import contextlib
import csv
import errno
import fcntl
import json
import os
import stat

from .table import text


class OutputError(RuntimeError):
    """With a message for people."""


def _names(path):
    """Of the table and of the description beside it."""
    kept = os.path.realpath(path)
    return kept, os.path.splitext(kept)[0] + ".json"


def refuse_what_is_there(path, overwrite):
    """OutputError: a table cannot be there, or something is and is not to be replaced."""
    kept, beside = _names(path)
    if beside == kept:
        raise OutputError(f"'{path}' ends with .json, as the description of the machine beside it will: "
                          "name the table .csv")
    if not overwrite and os.path.exists(beside):
        raise OutputError(f"'{beside}' is there already, where the machine is to be described: "
                          "name another table, or replace it with --overwrite")
    if not os.path.isdir(os.path.dirname(kept)):
        raise OutputError(f"'{path}' cannot be written: {os.strerror(errno.ENOENT)}")
    try:
        there = os.stat(kept).st_mode
    except OSError:
        return
    if not stat.S_ISREG(there):
        raise OutputError(f"'{path}' is no regular file: a table needs one, and has its machine beside it")
    if not overwrite:
        raise OutputError(f"'{path}' is there already: name another file, or replace it with --overwrite")


class Output:
    """OutputError: it cannot be written, another run writes it now, or it is there and is not to be replaced."""

    def __init__(self, path, overwrite):
        self.path = path
        self.rows = 0
        self._kept, self._beside = _names(path)
        self._part = self._kept + ".part"
        refuse_what_is_there(path, overwrite)
        try:
            self._file = open(self._part, "a", newline="")
            self._hold()
            self._file.truncate(0)
        except OSError as error:
            raise self._failed(error) from None
        self._cells = csv.writer(self._file, lineterminator="\n")

    def _hold(self):
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return  # a file system without locks
            raise OutputError(f"another `predictor collect` writes '{self.path}' now: name another file") from None
        # The other one may have ended in between, and given its file the table's name.
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(self._file.fileno()), os.stat(self._part)):
                return
        raise OutputError(f"another `predictor collect` wrote '{self.path}' just now: name another file")

    def head(self, cells):
        self._put(cells)

    def row(self, cells):
        self._put(cells)
        self.rows += 1

    def _put(self, cells):
        try:
            self._cells.writerow([text(cell) for cell in cells])
            self._file.flush()
        except OSError as error:
            raise self._failed(error) from None

    def keep(self, description):
        """The rows under their name, what is known of the machine beside them."""
        try:
            with open(self._beside + ".part", "w") as file:
                json.dump(description, file, indent=2)
                file.write("\n")
            os.replace(self._beside + ".part", self._beside)
            os.replace(self._part, self._kept)  # held until then: nobody else begins in it
            self._file.close()
        except OSError as error:
            raise self._failed(error) from None

    def drop(self):
        """Nothing is left."""
        with contextlib.suppress(OSError):
            os.unlink(self._part)
        with contextlib.suppress(OSError):
            self._file.close()

    def _failed(self, error):
        with contextlib.suppress(OSError, AttributeError):
            self._file.close()
        kept = f"; {self.rows} rows are in '{self._part}'" if self.rows else ""
        return OutputError(f"'{self.path}' cannot be written: {error.strerror}{kept}")
