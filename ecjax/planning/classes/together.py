"""Plans side by side: lanes that are at the same step take it as one program.

A lane is ordinary code: what it does next follows from what it has found. It runs in a thread of its own, and asks for
its long steps, which are compiled programs, by ``Call``. Lanes take turns: each runs until it asks for a step or ends,
and when all wait, those that ask for the same step, with arrays of the same shapes, have it run for all of them at once
(``jax.vmap``). So nothing depends on which thread is faster, and nothing has to be safe from other threads.

These programs always have the same number of lanes, the last one repeated: few are compiled while lanes end one after
the other, and what comes of a lane does not depend on how many others there are.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial
from threading import Semaphore, Thread
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp

from ecjax.planning.problem import Problem
from ecjax.programs import function_of, quick_options

_Result = TypeVar("_Result")

# What a lane holds at its peak: arrays of a number per file and node, of one per file and kind, and of what a block of
# rows or a part of a grid is tried with.
_ARRAYS, _MIXES, _TRIED = 30, 3, 10
_MOST_KINDS, _LARGEST_BLOCK, _ELEMENTS = 64, 64, 4_000_000


class Call(Protocol):
    """Runs a step of a lane: a program (``ecjax.programs``) of arrays, and by name what is no array."""

    def __call__(self, step: Callable[..., _Result], /, *arguments: Any, **static: Hashable) -> _Result:
        """The result of the step."""


def alone(step: Callable[..., _Result], /, *arguments: Any, **static: Hashable) -> _Result:
    """Run a step of a lane that nothing goes beside."""
    return step(*arguments, **static)


def run_together(lanes: Sequence[Callable[[Call], _Result]], width: int) -> list[_Result]:
    """Results of lanes that take the same steps side by side, ``width`` of them at a time.

    Args:
        lanes: each gets what it calls its steps by. What they share they may change, as they take turns.
        width: lanes of a program; at 1 lanes go one after the other, by the programs that there are.

    Raises:
        Exception: what the first lane that failed raised, or a step; the other lanes are ended then.
    """
    if width == 1:
        return [lane(alone) for lane in lanes]
    groups = [lanes[first : first + width] for first in range(0, len(lanes), width)]
    return [result for group in groups for result in _side_by_side(group, width)]


def width_of(lanes: int, widest: int) -> int:
    """How wide the programs for some lanes are: a power of two, so that sweeps of about as many share them.

    Args:
        lanes: in all, at least 1.
        widest: most lanes of a program, at least 1.
    """
    return min(1 << (lanes - 1).bit_length(), 1 << (widest.bit_length() - 1))


def lanes_per_program(problem: Problem, memory_bytes: float) -> int:
    """How many lanes fit into ``memory_bytes``, at least one, whatever the classes of the files are."""
    files, nodes = problem.files.count, problem.nodes.count
    block = _LARGEST_BLOCK * _MOST_KINDS * nodes
    numbers = (_ARRAYS * nodes + _MIXES * _MOST_KINDS) * files
    numbers += _TRIED * max(block, min(block * nodes, _ELEMENTS))
    return max(1, int(memory_bytes // (8 * numbers)))


class _Request(NamedTuple):
    """A step that a lane waits for."""

    step: Callable[..., Any]
    arguments: tuple[Any, ...]
    static: tuple[tuple[str, Hashable], ...]

    @property
    def form(self) -> Hashable:
        """What all requests that one program answers have in common."""
        leaves, tree = jax.tree.flatten(self.arguments)
        return self.step, self.static, tree, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


class _Ended(BaseException):
    """Nobody waits for this lane any more."""


class _Lane(Generic[_Result]):
    """A lane in a thread of its own, which runs only while ``resume`` does."""

    def __init__(self, run: Callable[[Call], _Result]) -> None:
        self.request: _Request | None = None  # what it waits for; None once it has ended
        self.results: list[_Result] = []  # one, when it has ended
        self._run = run
        self._error: BaseException | None = None
        self._answer: Any = None
        self._ended = False
        self._may_run, self._waits = Semaphore(0), Semaphore(0)
        self._thread = Thread(target=self._in_thread, name="lane", daemon=True)

    def resume(self, answer: Any = None) -> None:
        """Give it what it waits for, and let it run until it asks for its next step or ends.

        Raises:
            BaseException: whatever it raised.
        """
        self.request, self._answer = None, answer
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._may_run.release()
        self._waits.acquire()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Have its thread end, where it has not yet."""
        self._ended = True
        if self._thread.is_alive():
            self._may_run.release()
            self._thread.join()

    def _in_thread(self) -> None:
        try:
            self.results.append(self._run(self._call))
        except _Ended:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._waits.release()

    def _call(self, step: Callable[..., Any], /, *arguments: Any, **static: Hashable) -> Any:
        if not self._ended:
            self.request = _Request(step, arguments, tuple(sorted(static.items())))
            self._waits.release()
            self._may_run.acquire()
        if self._ended:
            raise _Ended
        answer, self._answer = self._answer, None
        return answer


def _side_by_side(lanes: Sequence[Callable[[Call], _Result]], width: int) -> list[_Result]:
    """Results of at most ``width`` lanes."""
    running = [_Lane(lane) for lane in lanes]
    try:
        for lane in running:
            lane.resume()
        while waiting := [lane for lane in running if lane.request is not None]:
            answers = _answers([lane.request for lane in waiting if lane.request is not None], width)
            for lane, answer in zip(waiting, answers, strict=True):
                lane.resume(answer)
    finally:
        for lane in running:
            lane.end()
    return [lane.results[0] for lane in running]


def _answers(requests: Sequence[_Request], width: int) -> list[Any]:
    """What each request asks for."""
    groups: dict[Hashable, list[int]] = {}
    for place, request in enumerate(requests):
        groups.setdefault(request.form, []).append(place)
    answers: list[Any] = [None] * len(requests)
    for places in groups.values():
        first = requests[places[0]]
        filled = places + [places[-1]] * (width - len(places))
        results = _several(first.step, first.static)(tuple(requests[place].arguments for place in filled))
        for place, result in zip(places, results, strict=False):
            answers[place] = result
    return answers


@cache
def _several(step: Callable[..., Any], static: tuple[tuple[str, Hashable], ...]) -> Callable[..., Any]:
    """The program of a step for several lanes: of their arguments, (L,), it makes their results, (L,)."""
    mapped = jax.vmap(partial(function_of(step), **dict(static)))

    # stacked and taken apart within the program: a model has dozens of arrays, and each would be a call of its own
    def run(lanes: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
        results = mapped(*jax.tree.map(lambda *leaves: jnp.stack(leaves), *lanes))
        return tuple(jax.tree.map(lambda leaf, at=at: leaf[at], results) for at in range(len(lanes)))

    return jax.jit(run, compiler_options=quick_options())
