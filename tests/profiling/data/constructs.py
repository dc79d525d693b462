"""Statements of every shape, each run a known number of times. Sleeps are 2 ms, so that times can be told apart."""

import asyncio
import contextlib
import threading
import time


def nap(value=None):
    time.sleep(0.002)
    return value


class Slow:
    """Everything that the language calls by itself takes 2 ms."""

    def __init__(self, true=False):
        self.true = true

    def __bool__(self):
        nap()
        return self.true

    def __getitem__(self, key):
        return nap(key)

    def __setitem__(self, key, value):
        nap()

    def __add__(self, other):
        return nap(self)

    def item(self):
        return nap(0)

    def chain(self):
        return self


def one_line(slow):
    return max(nap(1), nap(2)), slow.item() + slow.item()  # two calls and two more on one line


def arguments(slow):
    return int(
        nap(slow.item())
    )


def chained(slow):
    return (
        slow.chain()
        .chain()
        .item()
    )


def comprehensions(slow):
    a = [slow.item() for _ in range(3)]
    b = {slow.item(): slow.chain() for _ in range(2)}
    c = sum(slow.item() for _ in range(4))
    return a, b, c


def truths(slow):
    if slow:
        return 1
    while slow and True:
        return 2
    return 3 if not slow else 4


def operators(slow):
    x = slow[1:2]
    slow[0] = x
    y = slow + 1
    return y


def loops(n):
    total = 0
    for i in range(n):
        if i == 1:
            continue
        total += nap(i)
    while total > 0:
        total -= nap(1)
    for j in range(n):
        for k in range(2):
            if k == 1:
                break
            nap(k)
        else:
            total += 100
    return total


def leaves(n):
    for i in range(10):
        if i == n:
            return nap(i)
    return None


def recursive(n):
    return nap(n) if n == 0 else recursive(n - 1)


def raising(kind):
    nap()
    raise kind


def caught():
    try:
        raising(ValueError)
    except ValueError:
        nap("after")


def uncaught():
    first = raising(KeyError)
    return first


def through():
    with contextlib.suppress(KeyError):
        uncaught()
    nap("through")


def produce(slow):
    got = yield slow.item()
    for _ in range(2):
        total = [got, (yield nap("yielded"))]
    return total


def consume(slow):
    out = []
    for value in produce(slow):
        out.append(value)
        time.sleep(0.004)
    return out


def delegated(slow):
    return (yield from produce(slow))


def thrown(slow):
    made = produce(slow)
    next(made)
    with contextlib.suppress(ZeroDivisionError):
        made.throw(ZeroDivisionError)
    made = produce(slow)
    next(made)
    made.close()


async def handler(slow, name):
    value = slow.item()
    waited = [value, await asyncio.sleep(0.01), nap("task")]
    async for number in ticker(2):
        nap(number)
    return waited


async def ticker(n):
    for turn in range(n):
        yield turn
        await asyncio.sleep(0.001)


async def both(slow):
    await asyncio.gather(handler(slow, "a"), handler(slow, "b"))
    task = asyncio.ensure_future(never())
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def never():
    for _ in range(3):
        await asyncio.sleep(60)


def in_thread(slow):
    for _ in range(5):
        value = slow.item()
        nap(value)


later = lambda slow: slow.item()  # noqa: E731


def decorated(function):
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorated
def wrapped(slow):
    return nap(slow.item())


class Body:
    made = nap("class")

    @property
    def length(self):
        return nap("property")


def main():
    slow = Slow()
    one_line(slow)
    arguments(slow)
    chained(slow)
    comprehensions(slow)
    truths(slow)
    operators(slow)
    loops(3)
    leaves(4)
    recursive(3)
    caught()
    through()
    consume(slow)
    list(delegated(slow))
    thrown(slow)
    asyncio.run(both(slow))
    threads = [threading.Thread(target=in_thread, args=(slow,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    later(slow)
    wrapped(slow)
    Body().length


for turn in range(2):
    main()
nap("end")
print("finished")
