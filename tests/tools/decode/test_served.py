"""The served client against planted servers: each fault is named, none of a faulty server's answers is counted."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.tools.decode import planted
from tests.tools.decode.planted import make_clips
from tools.decode.served import Served, ServedRecogniser, probe
from tools.decode.served.journal import Journal
from tools.decode.served.settings import seeds_for
from tools.decode.served.wire import Choice
from tools.errors import ProviderError, UsageError

INSTRUCTION = "Transcribe the following recording of a warehouse word for word."
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    return make_clips(tmp_path_factory.mktemp("clips"), 24)


def hearing(server, folder, **more):
    urls = [s.url for s in server] if isinstance(server, list) else server.url
    settings = {"endpoints": urls, "model": "planted", "backoff_s": 0.01, "timeout_s": 0.6, **more}
    return ServedRecogniser.load(Served.build(settings), folder)


def sampled(heard, clips, **more):
    return heard.sample(clips, INSTRUCTION, 60, n=8, temperature=0.8, seed=3, **more)


def test_an_honest_server_passes_the_probe_and_its_answers_are_kept_with_their_seeds(clips, tmp_path):
    with planted.Planted(clips) as server:
        heard = hearing(server, tmp_path)
        found = probe(heard, clips, INSTRUCTION, 60)
        assert found.ok and found.differing == 0 and found.repeated == 8
        greedy = heard.greedy(clips, INSTRUCTION, 60)
        groups = sampled(heard, clips)
        more = heard.sample(clips, INSTRUCTION, 60, n=8, first=8, temperature=0.8, seed=3)
        asked = server.asked
        assert heard.greedy(clips, INSTRUCTION, 60) == greedy and sampled(heard, clips) == groups
        assert server.asked == asked, "what is kept is not asked for again"
    for clip, one, first, second in zip(clips, greedy, groups, more, strict=True):
        assert one.clip_id == clip.id and one.index == -1 and one.seed is None and one.temperature == 0
        assert [a.index for a in (*first, *second)] == list(range(16))
        assert len({a.seed for a in (*first, *second)}) == 16
        assert len({a.text for a in first}) > 1
    counts = [v for (_, temperature, _), v in server.seen.items() if temperature > 0]
    assert sum(v > 1 for v in counts) == 0, "the probe's seeds are its own, and every sampled answer is asked for once"


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (planted.OneAnswer, "one_answer"),
        (planted.IgnoresN, "n_ignored"),
        (planted.IgnoresTemperature, "temperature_ignored"),
        (planted.CutsAt20, "cut_short"),
        (planted.CutsAndSaysStop, "cut_short"),
        (planted.Swaps, "answers_swapped"),
        (planted.SwapsSideBySide, "answers_swapped"),
        (planted.AddsThePrompt, "prompt_in_text"),
        (planted.MixesLanguages, "language"),
        (planted.AudioFirst, "order"),
        (planted.Mute, "no_text"),
        (planted.PlacesItself, "placeholder"),
    ],
)
def test_the_probe_names_a_server_that_answers_wrongly(kind, named, clips, tmp_path):
    with kind(clips[:8]) as server:
        found = probe(hearing(server, tmp_path), clips[:8], INSTRUCTION, 60)
    assert found.failed == [named], found.to_json()
    assert named in found.text() and not list(tmp_path.glob("*.jsonl")), "nothing of a probe is counted"


def test_without_a_placeholder_the_parts_decide_and_their_order_is_seen(clips, tmp_path):
    with planted.PlacesItself(clips[:8]) as server:
        found = probe(hearing(server, tmp_path, placeholder=""), clips[:8], INSTRUCTION, 60)
    assert found.ok, found.to_json()
    assert next(f for f in found.findings if f.check == "order").text == "instruction before audio"


def test_log_probs_that_leave_the_temperature_out_are_kept_at_temperature_one_alone(clips, tmp_path):
    """Taken for those of the distribution sampled from, they would call an easy clip's equal answers copies."""
    with planted.RawLogprobs(clips) as server:
        for said, temperature, kept in [
            ({}, 0.8, False),
            ({}, 1.0, True),
            ({"logprobs": "raw"}, 0.8, False),
            ({"logprobs": "sampled"}, 0.8, True),
        ]:
            heard = hearing(server, tmp_path / f"{said} {temperature}", **said)
            (group,) = heard.sample(clips[:1], "", 60, n=4, temperature=temperature, seed=3)
            assert all((a.logprobs is not None) == kept and a.tokens for a in group), (said, temperature)


def test_greedy_that_does_not_repeat_is_counted_as_the_noise_floor(clips, tmp_path):
    with planted.ColdDiffers(clips) as server:
        found = probe(hearing(server, tmp_path), clips, INSTRUCTION, 60)
    assert found.ok and found.differing > 0
    assert any(f.check == "greedy_repeats" and not f.ok for f in found.findings)


def test_a_server_that_ignores_n_is_refused_in_the_run_as_well_naming_the_clip(clips, tmp_path):
    with planted.IgnoresN(clips) as server:
        heard = hearing(server, tmp_path)
        with pytest.raises(ProviderError, match=r"clip c\d+, endpoint 1: 1 answer\(s\) came where 8"):
            sampled(heard, clips)
        journal = Journal(heard.journal_path)
        assert not journal.pending and not any(c.text for k, c in journal.confirmed.items() if ":" in k)
        journal.close()
        one_each = hearing(server, tmp_path, per_request=1)
        groups = sampled(one_each, clips[:4])
        assert all(len(g) == 8 and len({a.seed for a in g}) == 8 for g in groups), "one request an answer still works"


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (planted.Busy, "status_429"),
        (planted.Breaks, "status_500"),
        (planted.Hangs, "timeout"),
        (planted.HalfABody, "half_body"),
        (planted.ShortLength, "half_body"),
        (planted.LongLength, "half_body"),
        (planted.WebPage, "half_body"),
    ],
)
def test_a_server_that_stumbles_is_asked_again_and_each_answer_counts_once(kind, fault, clips, tmp_path):
    with kind(clips) as server:
        heard = hearing(server, tmp_path)
        groups = sampled(heard, clips[:9])
        assert set(heard.faults) == {fault}, heard.faults
    with planted.Planted(clips) as server:
        assert groups == sampled(hearing(server, tmp_path / "honest"), clips[:9])


@pytest.mark.parametrize(
    ("kind", "fault"),
    [(planted.Busy, "status 429"), (planted.Breaks, "out of memory"), (planted.HalfABody, "half_body")],
)
def test_a_server_that_only_fails_is_given_up_in_one_sentence(kind, fault, clips, tmp_path):
    class Always(kind):
        every = 1

    with Always(clips) as server, pytest.raises(ProviderError, match=f"after 3 attempts.*|{fault}") as told:
        sampled(hearing(server, tmp_path, tries=3), clips[:4])
    assert fault in str(told.value)


def test_a_second_endpoint_does_the_work_of_one_that_fails(clips, tmp_path):
    class Dead(planted.Breaks):
        every = 1

    with planted.Planted(clips) as good, Dead(clips) as bad:
        groups = sampled(hearing([bad, good], tmp_path, tries=4), clips)
    assert len(groups) == len(clips) and good.asked >= len(clips)


def test_endpoints_with_different_models_are_found_out(clips, tmp_path):
    class Other(planted.ChangesSilently):
        after = -1

    with (
        planted.Planted(clips) as one,
        Other(clips) as two,
        pytest.raises(ProviderError, match=r"endpoint 2 answers clip c\d+ otherwise"),
    ):
        sampled(hearing([one, two], tmp_path), clips)


@pytest.mark.parametrize("kind", [planted.Renames, planted.ChangesSilently])
def test_a_model_that_changes_in_mid_run_is_named_and_nothing_of_it_is_counted(kind, clips, tmp_path):
    with kind(clips) as server:
        heard = hearing(server, tmp_path, concurrency=2)
        with pytest.raises(ProviderError, match=r"the model changed in mid-run.*are not counted"):
            sampled(heard, clips)
        journal = Journal(heard.journal_path)
        assert not journal.confirmed and not journal.pending
        journal.close()
    with planted.Planted(clips) as server:
        again = sampled(hearing(server, tmp_path), clips)
        assert again == sampled(hearing(server, tmp_path / "fresh"), clips), "the first model served again goes on"


def test_transcriptions_give_greedy_answers_and_say_that_nothing_can_be_sampled(clips, tmp_path):
    with planted.TranscribesOnly(clips) as server:
        heard = hearing(server, tmp_path, api="transcriptions")
        assert not heard.can_sample
        answers = heard.greedy(clips, "", 60)
        assert [a.clip_id for a in answers] == [c.id for c in clips] and all(a.text for a in answers)
        with pytest.raises(UsageError, match="greedy answers only"):
            sampled(heard, clips)
        assert probe(heard, clips, "", 60).ok


def test_a_transcription_tells_its_language_its_limit_and_what_the_model_would_else_fill_in(clips, tmp_path):
    with planted.EnglishOnly(clips) as server:
        answers = hearing(server, tmp_path, api="transcriptions").greedy(clips[:3], "Orders.", 60)
        assert all(a.text for a in answers)
        form = server.forms[-1]
        assert {k: form[k] for k in ("model", "language", "prompt")} == {
            "model": "planted",
            "language": "en",
            "prompt": "Orders.",
        }
        assert float(form["temperature"]) == 0 and float(form["repetition_penalty"]) == 1
        assert form["max_completion_tokens"] == "60" and form["response_format"] == "json"
        other = {"api": "transcriptions", "options": {"repetition_penalty": None, "language": "de"}}
        hearing(server, tmp_path / "other", **other).greedy(clips[:1], "", 60)
        assert server.forms[-1]["language"] == "de"
        assert not {"repetition_penalty", "prompt"} & server.forms[-1].keys()


def test_nothing_that_the_models_own_settings_would_fill_in_is_left_out(clips, tmp_path):
    with planted.ModelsDefaults(clips) as server:
        heard = hearing(server, tmp_path)
        texts = [a.text for a in heard.greedy(clips[:3], "", 60)], sampled(heard, clips[:3])
    with planted.Planted(clips) as server:
        heard = hearing(server, tmp_path / "plain")
        assert texts == ([a.text for a in heard.greedy(clips[:3], "", 60)], sampled(heard, clips[:3]))


def test_chat_with_a_server_that_has_none_is_told_in_the_servers_words(clips, tmp_path):
    with planted.TranscribesOnly(clips) as server, pytest.raises(ProviderError, match=r"status 404 \(Not Found\)"):
        sampled(hearing(server, tmp_path), clips[:2])


def test_settings_that_cannot_be_used_are_named():
    good = {"endpoints": "http://localhost:1/v1", "model": "m"}
    for bad, said in [
        ({"model": "m"}, "needs endpoints"),
        ({**good, "endpoint": "x"}, "closest: endpoints"),
        ({**good, "api": "completions"}, "seed_model.api"),
        ({**good, "endpoints": "http://me:secret@host/v1"}, "must not hold a key"),
        ({**good, "concurrency": 0}, "concurrency"),
        ({**good, "logprobs": "all"}, "seed_model.logprobs"),
    ]:
        with pytest.raises(UsageError, match=said):
            Served.build(bad)
    with pytest.raises(UsageError, match="no such environment variable"):
        Served.build({**good, "endpoints": "$NO_SUCH_VARIABLE"}).urls()


def test_a_server_that_is_not_there_or_lacks_the_model_is_one_sentence(clips, tmp_path):
    with pytest.raises(ProviderError, match="no connection"):
        ServedRecogniser.load(
            Served.build({"endpoints": "http://127.0.0.1:9/v1", "model": "m", "tries": 2, "backoff_s": 0.01}), tmp_path
        )
    with planted.Planted(clips) as server, pytest.raises(UsageError, match="it lists planted"):
        hearing(server, tmp_path, model="whisper")


def test_seeds_are_distinct_stable_and_go_on_where_they_were():
    for rule in ("consecutive", "list", "single"):
        first, more = seeds_for(rule, 7, "c1", 0, 8), seeds_for(rule, 7, "c1", 8, 8)
        assert [*first, *more] == list(seeds_for(rule, 7, "c1", 0, 16)) and len({*first, *more}) == 16
        assert not {*first, *more} & {*seeds_for(rule, 7, "c2", 0, 16)}
    start = seeds_for("consecutive", 7, "c1", 0, 8)
    assert list(start) == [start[0] + i for i in range(8)], "vLLM: child i of a request with seed s has s + i"


# -- the journal ----------------------------------------------------------------------------------------------------


def test_a_torn_line_is_cut_off_and_the_first_of_two_lines_counts(tmp_path):
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    journal.keep({"a": Choice("one", "stop", (1, 2), (-0.5, -0.25))})
    journal.agree({"texts": {}})
    journal.close()
    with open(path, "ab") as file:
        file.write(json.dumps({"key": "a", "choice": {"text": "two", "finish": "stop"}}).encode() + b"\n")
        file.write(b'{"key": "b", "choi')
    journal = Journal(path)
    assert journal.confirmed == {"a": Choice("one", "stop", (1, 2), (-0.5, -0.25))} and not journal.pending
    assert path.read_bytes().endswith(b"}\n")
    with pytest.raises(UsageError, match="another process"):
        Journal(path)
    journal.close()


CLIENT = """
import json, sys
from pathlib import Path
from tests.tools.decode.planted import make_clips
from tools.decode.served import Served, ServedRecogniser
url, clips, out, count, concurrency = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
served = Served.build({"endpoints": url, "model": "planted", "concurrency": concurrency})
heard = ServedRecogniser.load(served, out)
groups = heard.sample(make_clips(clips, count), "", 60, n=8, temperature=0.8, seed=3)
print(json.dumps([[a.to_json() for a in g] for g in groups]))
"""


def killed_three_times(server, folder, count, steps):
    """Runs the client in a process of its own, kills it (SIGKILL) after so many answers, and lets the last one end."""
    out = folder / "kept"
    command = [sys.executable, "-c", CLIENT, server.url, str(folder / "clips"), str(out), str(count), "4"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    for step in steps:
        started, at = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL), server.asked
        deadline = time.monotonic() + 120
        while server.asked < at + step and time.monotonic() < deadline:
            time.sleep(0.01)
        started.send_signal(signal.SIGKILL)
        started.wait()
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_each_answer_once(groups, server, clips):
    assert [g[0]["clip_id"] for g in groups] == [c.id for c in clips]
    assert all([a["index"] for a in g] == list(range(8)) for g in groups)
    seen = Counter({k: v for k, v in server.seen.items() if k[1] > 0})
    assert len(seen) == len(clips)
    twice = sum(v > 1 for v in seen.values())
    assert twice <= 3 * 4 and max(seen.values()) <= 4, "only what was in flight at a kill was asked for again"


class Slow(planted.Planted):
    def answers(self, clip_id, ref, body):
        time.sleep(0.02)
        return super().answers(clip_id, ref, body)


def test_a_client_killed_three_times_goes_on_and_has_each_answer_once(tmp_path):
    clips = make_clips(tmp_path / "clips", 60)
    with Slow(clips) as server:
        groups = killed_three_times(server, tmp_path, 60, (12, 14, 16))
        check_each_answer_once(groups, server, clips)
