"""Backends of a model folder: PyTorch and exported engines, loaded on first use."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from heedful.engines.ctranslate2 import SHORTLIST
from heedful.engines.engine import BATCHED, Backend, Stepwise, together
from heedful.engines.exact import Exact
from heedful.engines.exported import Exported, find_exported, named_engine
from heedful.engines.folder import ModelFolder
from heedful.engines.shortlist_file import read_shortlist
from heedful.errors import FileRefused, MissingExtra, UsageError, needed_for
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.inputs import InputDraw

if TYPE_CHECKING:
    from heedful.models.interface import Seq2Seq


@final
class Backends:
    """Backends that can run one model, and the choice among them."""

    def __init__(
        self,
        folder: ModelFolder,
        sizes: tuple[Any, ...],
        draw: InputDraw,
        max_tokens: int,
        device: str,
        engine: str,
        partners: "Sequence[Backends]" = (),
    ) -> None:
        """Find the backends without loading any.

        Args:
            sizes: arguments of the model configuration's `build`, such as vocabulary sizes.
            draw: function that draws random sources of the kind that the model reads.
            max_tokens: maximum number of tokens of an output.
            device: PyTorch's device, such as cpu or cuda; "auto" = a CUDA device if there is one.
            engine: "torch", the name of an exported engine, or "auto".
            partners: backends of the other models of an ensemble, which share the vocabulary; probabilities are
                averaged.

        Raises:
            UsageError: the model has no engine of that name.
        """
        self.exported: Final[dict[str, Exported]] = find_exported(folder, max_tokens)
        if engine not in ("auto", "torch"):
            named_engine(self.exported, engine, folder)
        self._folder = folder
        self._sizes = sizes
        self.draw: Final = draw
        """Function that draws random sources of the kind that the model reads."""
        self._max_tokens = max_tokens
        self._device = device
        self.engine: Final = engine
        """Engine that was asked for: "torch", "auto" or the name of an exported engine."""
        self._partners: Final = tuple(partners)
        self._opened: dict[str, Backend] = {}
        self._exact: dict[str, Backend] = {}
        self._model: Seq2Seq | None = None

    def searching(
        self,
        search: SearchConfig,
        attention: bool = False,
        constraints: Constraints | None = None,
        is_exact: bool = False,
    ) -> Backend:
        """Return the backend for a search.

        Args:
            search: beam, penalties and limits.
            attention: whether attention weights are needed.
            constraints: prefix, required and banned phrases of the outputs; None = no constraints.
            is_exact: whether results must be bit-identical in every batch (`heedful.engines.exact`).

        Returns:
            The backend of the named engine. For "auto", the fastest engine that matched PyTorch when it was exported
            and supports the search; PyTorch if there is none.

        Raises:
            MissingExtra: the package that runs the engine is not installed.
            FileRefused: the engine's files were changed.
            UsageError: the named engine does not support exact results, or ensembles.
        """
        constraints = constraints or Constraints()
        by_steps = is_exact or bool(self._partners)
        backend = self._joined(
            lambda each: each.why_not(search, attention, by_steps),
            lambda each: each.supports(search, attention) or each.supports_constraints(constraints),
        )
        return self._in_blocks(backend) if is_exact else backend

    def by_steps(self, search: SearchConfig, attention: bool = False) -> Stepwise | None:
        """Return the backend for a search that changes the probabilities of each step.

        Args:
            search: beam, penalties and limits.
            attention: whether attention weights are needed.

        Returns:
            The backend, chosen as in `searching`; None if the named engine searches by itself, or PyTorch is needed and
            not installed.

        Raises:
            FileRefused: the engine's files were changed.
        """
        try:
            backend = self._joined(
                lambda each: each.why_not(search, attention, is_exact=True),
                lambda each: each.supports(search, attention),
            )
        except MissingExtra:
            return None
        return backend if isinstance(backend, Stepwise) else None

    def scoring(self, attention: bool = False, is_exact: bool = False) -> Backend:
        """Return the backend for scoring given outputs (forced decoding).

        Args:
            attention: whether attention weights are needed.
            is_exact: whether results must be bit-identical in every batch (`heedful.engines.exact`).

        Returns:
            The backend, chosen as in `searching`.

        Raises:
            MissingExtra: the package that runs the engine is not installed.
            FileRefused: the engine's files were changed.
            UsageError: the named engine does not support exact results, or ensembles.
        """
        by_steps = is_exact or bool(self._partners)
        backend = self._joined(
            lambda each: each.why_not_exact() if by_steps else None, lambda each: each.supports_scoring(attention)
        )
        return self._in_blocks(backend) if is_exact else backend

    def _in_blocks(self, backend: Backend) -> Backend:
        """Bit-exact version of a backend: its results depend only on the source.

        Raises:
            UsageError: the backend does not decode token by token.
        """
        if not isinstance(backend, Stepwise):
            raise UsageError(f"{backend.name}: {BATCHED}")
        if backend.name not in self._exact:
            self._exact[backend.name] = Exact(backend, self.draw)
        return self._exact[backend.name]

    def _joined(self, known: Callable[[Exported], str | None], refusal: Callable[[Backend], str | None]) -> Backend:
        """Fastest backend of this model, combined with the fastest backends of its ensemble partners, if any."""
        backends = [each._fastest(known, refusal) for each in (self, *self._partners)]
        return backends[0] if len(backends) == 1 else together(backends)

    def _fastest(self, known: Callable[[Exported], str | None], refusal: Callable[[Backend], str | None]) -> Backend:
        """Named backend; for "auto" the first that nothing rules out, before or after loading; else PyTorch."""
        if self.engine != "auto":
            return self._open(self.engine)
        for name, exported in self.exported.items():
            if exported.fault or exported.facts.get("precision") != "float32" or not exported.parity.is_exact:
                continue
            if known(exported):
                continue
            try:
                backend = self._open(name)
            except MissingExtra:
                continue
            if refusal(backend) is None:
                return backend
        return self._open("torch")

    def _open(self, name: str) -> Backend:
        if name not in self._opened:
            is_named = name == self.engine
            self._opened[name] = (
                self._open_torch() if name == "torch" else self.exported[name].load(self._max_tokens, is_named)
            )
        return self._opened[name]

    def _open_torch(self) -> Backend:
        """Load PyTorch and the model.

        Raises:
            MissingExtra: PyTorch is not installed.
        """
        with needed_for("running this model"):
            from heedful.models.engine import torch_backend
        folders = [each.path for each in self.exported.values() if not each.fault and (each.path / SHORTLIST).is_file()]
        return torch_backend(self.model(), self._max_tokens, partial(read_shortlist, folders[0]) if folders else None)

    def model(self) -> "Seq2Seq":
        """Return the PyTorch model, loaded on first use.

        Returns:
            The model in evaluation mode; every call returns the same object.

        Raises:
            MissingExtra: PyTorch is not installed.
            FileRefused: the folder's model is not a sequence-to-sequence model.
        """
        if self._model is None:
            with needed_for("running this model"):
                from heedful.models.interface import Seq2Seq
                from heedful.models.store import load_model

            model = load_model(self._folder, self._sizes, self._device)
            if not isinstance(model, Seq2Seq):
                raise FileRefused(f"{self._folder.path}: its model is no sequence-to-sequence model")
            self._model = model
        return self._model
