"""What the demo corpus says: logistics sentences out of a small grammar, and general English for the retention set."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

DOMAIN: tuple[str, ...] = (
    "please {verb} {count} {goods} to the {place} before {day} {part} because {reason}",
    "the {place} needs {count} more {goods} by {day} {part} and {reason}",
    "tell the {role} of truck {digit} {digit} to wait at gate {digit} until {day} {part}",
    "order {digit} {digit} {digit} {digit} is missing {count} {goods} so please call the {role}",
    "can you check the temperature in the {place} again before the {role} leaves on {day}",
    "we will close the {place} at {hour} on {day} so {verb} the last {goods} first",
    "cancel the pickup for customer {digit} {digit} {digit} and call the {role} back on {day}",
    "there are {count} {goods} at gate {digit} and {reason}",
    "load {count} {goods} on trailer {digit} {digit} and {verb} the rest on {day} {part}",
    "the {role} says that {count} {goods} are damaged and {reason}",
    "if the truck comes at {hour} then {verb} the {goods} from the {place} to gate {digit}",
    "do not {verb} the {goods} in the {place} until the {role} is back on {day}",
    "shipment {digit} {digit} {digit} left the {place} at {hour} with only {count} {goods}",
    "ask the {role} why {count} {goods} are still in the {place} on {day} {part}",
    "we have room for {count} {goods} in the {place} but {reason}",
    "send an invoice for {count} {goods} to customer {digit} {digit} {digit} by {day} {part}",
)

SLOTS: dict[str, tuple[str, ...]] = {
    "verb": ("move", "send", "return", "hold", "scan", "reload", "stack", "wrap", "label", "weigh"),
    "count": (
        *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "fourteen"),
        *("fifteen", "sixteen", "eighteen", "twenty", "thirty", "forty", "fifty", "sixty"),
    ),
    "goods": (
        "pallets",
        "crates",
        "drums",
        "barrels",
        "parcels",
        "trailers",
        "cartons",
        "boxes",
        "containers",
        "tires",
    ),
    "place": (
        "warehouse",
        "loading dock",
        "cold store",
        "packing line",
        "yard",
        "office",
        "sorting hall",
        "repair shop",
    ),
    "day": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday"),
    "part": ("morning", "afternoon", "evening", "night"),
    "hour": ("six", "seven", "eight", "nine", "ten", "eleven", "noon", "midnight"),
    "digit": ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    "role": ("driver", "foreman", "dispatcher", "planner", "supervisor", "clerk"),
    "reason": (
        "the driver is late",
        "the ramp is blocked",
        "the scanner is broken",
        "the seal is missing",
        "the label is torn",
        "the road is closed",
        "the customer is waiting",
        "the forklift is empty",
        "the papers are not signed",
        "the freezer is too warm",
    ),
}

GENERAL: tuple[str, ...] = (
    "the children walked along the river and counted the boats under the bridge",
    "my grandmother kept a small garden with roses and beans behind the house",
    "it rained so hard last night that the cellar filled with water",
    "she opened the window and listened to the birds in the old tree",
    "a good book can make a long winter evening feel short",
    "he forgot his umbrella on the train and came home soaking wet",
    "the museum shows paintings from three centuries in eleven bright rooms",
    "we had bread and cheese for lunch and slept in the shade",
    "the teacher wrote a long word on the board and asked who could read it",
    "my brother plays the violin and my sister sings in a choir",
    "the moon rose above the hills and the whole valley turned silver",
    "they painted the kitchen yellow because the room gets so little sun",
    "a dog ran across the field and chased the rabbits into the wood",
    "the doctor told him to rest and to drink plenty of tea",
    "every summer we go to the sea and collect shells on the beach",
    "the old clock in the hall has not been right for many years",
    "she learned to swim when she was four and has loved the water since",
    "the soup needs a little salt and some pepper before we eat",
    "nobody knew who had left the letter under the front door",
    "the mountain path is steep and narrow but the view is worth it",
    "he told the same funny story at every wedding in the family",
    "the baker starts work at night so that the bread is fresh at dawn",
    "a thin layer of snow covered the roofs of the village",
    "the judge listened to both sides and then asked a simple question",
    "we watched the football match with friends and lost by one goal",
    "the scientist looked through the microscope and could not believe her eyes",
    "the island has no cars and people travel by bicycle or on foot",
    "please turn off the light and close the door when you leave",
    "the musician tuned his guitar while the audience slowly became quiet",
    "her new shoes hurt so much that she walked home in her socks",
    "the river is frozen and the children skate on it after school",
    "he reads the newspaper every morning and complains about the weather",
    "a cat with white paws sleeps on the warm stones by the wall",
    "the farmer looked at the dark clouds and brought in the hay",
    "our neighbors have invited us to dinner and we should bring some flowers",
    "the bridge was built of stone by people who could not read",
    "she has lived in five countries and speaks four languages well",
    "the little shop on the corner sells tea and honey and candles",
    "they laughed so loudly that everybody in the theater turned around",
    "the apple tree gave more fruit this year than ever before",
    "he wanted to be a pilot but was afraid of high places",
    "the library is quiet in the morning and full of students in the afternoon",
    "an honest answer is better than a clever one that is not true",
    "the wind blew his hat over the fence and into the pond",
    "we planted tomatoes in spring and ate them all through august",
    "the actor forgot his lines and invented better ones on the spot",
    "most people in the village still remember the great flood",
    "her father taught her to mend a chair and to sharpen a knife",
    "the stars are much brighter when you are far away from the city",
    "after the concert we walked home slowly and talked about the music",
    "the smell of fresh coffee filled the house before anyone was awake",
    "he wrote a poem for his wife and hid it in her coat",
    "the queen waved from the balcony and the crowd began to cheer",
    "it takes patience and a steady hand to repair an old watch",
    "the fox watched the chickens from the edge of the forest",
    "they sat around the fire and told stories until late at night",
)

_SLOT = re.compile(r"\{(\w+)\}")


def _fill(template: str, rng: random.Random) -> str:
    return _SLOT.sub(lambda match: rng.choice(SLOTS[match[1]]), template)


def domain_sentences(count: int, rng: random.Random) -> list[str]:
    """`count` different sentences, every template used about equally often, in random order."""
    found: dict[str, None] = {}
    while len(found) < count:
        for template in rng.sample(DOMAIN, len(DOMAIN)):
            found.setdefault(_fill(template, rng))
    out = list(found)[:count]
    rng.shuffle(out)
    return out


def general_sentences(count: int, rng: random.Random) -> list[str]:
    """`count` different sentences of general English."""
    return rng.sample(GENERAL, count)


def words(sentences: Sequence[str]) -> set[str]:
    return {word for sentence in sentences for word in sentence.split()}
