"""Decoding by a server that speaks the OpenAI contract (vLLM, NIM, `rehear serve`): greedy, n sampled answers, extension."""

from tools.decode.served.probe import Finding as Finding
from tools.decode.served.probe import Probe as Probe
from tools.decode.served.probe import probe as probe
from tools.decode.served.recogniser import ServedRecogniser as ServedRecogniser
from tools.decode.served.settings import Served as Served
