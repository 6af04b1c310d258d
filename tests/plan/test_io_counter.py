"""What a query opened is counted in the blocks it belongs to, and in no others."""

import threading

import indextables as it
from indextables.plan.report import Recorder


def test_an_engines_thread_counts_in_the_only_block_there_is():
    """Blocks around it count too; once it is closed, nothing does."""
    with it.query_stats() as outer, it.query_stats() as inner:
        _in_a_thread(lambda: Recorder.of_engine().add(handed_over=2))
    _in_a_thread(lambda: Recorder.of_engine().add(handed_over=5))
    assert (outer.files_handed_over, inner.files_handed_over) == (2, 2)


def test_an_engines_thread_counts_nowhere_if_two_queries_could_be_meant():
    """Another thread has a block of its own open: whose files these are cannot be told."""
    opened, close = threading.Event(), threading.Event()

    def other() -> None:
        with it.query_stats():
            opened.set()
            close.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    assert opened.wait(60)
    with it.query_stats() as mine:
        _in_a_thread(lambda: Recorder.of_engine().add(opened=1))
        Recorder.of_engine().add(opened=1)
    close.set()
    thread.join()
    assert mine.data_files_opened == 1


def _in_a_thread(work) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
