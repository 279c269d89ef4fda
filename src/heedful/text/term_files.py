"""Files of terms: TSV with a source term, a target form and, if there is one, a note; or TBX-Basic."""

from collections.abc import Iterator
from pathlib import Path

from heedful.errors import DataError
from heedful.text.lines import read_lines
from heedful.text.quoting import shortened
from heedful.text.tbx import is_tbx, tbx_pairs
from heedful.text.terms import Term, Terms, folded_units
from heedful.text.text_files import check_file


def read_terms(path: Path, languages: tuple[str, str] = ("", "")) -> Terms:
    """Read a term list.

    Args:
        path: a file of TSV with two or three columns, whose empty lines and lines that begin with # are left out; or
            TBX-Basic, told by its name.
        languages: codes of source and target, for TBX.

    Returns:
        The terms, each source once.

    Raises:
        DataError: the file cannot be read, has no term, a row has another number of columns or a blank term, a term
            base has no terms in a language, or the same source term has two target forms.
    """
    check_file(path)
    is_base = is_tbx(path)
    terms: dict[tuple[str, ...], tuple[int, Term]] = {}
    for number, term in _tbx_terms(path, languages) if is_base else _tsv_terms(path):
        first, other = terms.setdefault(tuple(folded_units(term.source)), (number, term))
        if other.target != term.target:
            here, there = (f" concept {number}", "concept") if is_base else (f"{number}", "line")
            raise DataError(
                f"{path}:{here}: {shortened(term.source)} is {shortened(term.target)} here and "
                f"{shortened(other.target)} in {there} {first}; leave one of the two out"
            )
    if not terms:
        wanted = (
            "it needs a concept with both languages" if is_base else "write one per line, source term TAB target form"
        )
        raise DataError(f"{path}: no terms; {wanted}")
    return Terms(tuple(term for _, term in terms.values()))


def _tbx_terms(path: Path, languages: tuple[str, str]) -> Iterator[tuple[int, Term]]:
    if not all(languages):
        raise DataError(
            f"{path}: the languages of source and target are not known; add --term-languages, such as de:en"
        )
    for number, source, target in tbx_pairs(path, *languages):
        yield number, Term(source, target, origin=f"{path}: concept {number}")


def _tsv_terms(path: Path) -> Iterator[tuple[int, Term]]:
    for number, line in enumerate(read_lines(path, nul="refuse"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) not in (2, 3):
            raise DataError(
                f"{path}:{number}: expected a source term, a target form and a note at most, separated by tabs, "
                f"got {len(cells)} columns; a term has no tab"
            )
        if not (cells[0] and cells[1]):
            raise DataError(f"{path}:{number}: a term is blank; leave the row out")
        yield number, Term(*cells, origin=f"{path}:{number}")
