"""A process that works on a shared store: python -m tests.support.store_worker FOLDER NAME [RUNS]."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.support.stored_runs import ending, queued, turn

from evalstudio.project.config import StorageSettings
from evalstudio.storage.opening import open_store


async def main(folder: Path, name: str, runs: int) -> None:
    """Queue some runs, then work through whatever there is, from everybody."""
    async with await open_store(StorageSettings(), folder) as store:
        await queued(store, runs)
        quiet = 0
        while quiet < 3:
            claims = await store.claim(name, 10, 60)
            quiet = 0 if claims else quiet + 1

            async def work(claim: object) -> None:
                await store.append_turn(claim.lease, turn())  # pyright: ignore
                await store.finish(claim.lease, ending())  # pyright: ignore
                print(claim.lease.run_id, flush=True)  # pyright: ignore

            await asyncio.gather(*(work(claim) for claim in claims))
            await store.save_result({"agentId": name})
            if not claims:
                await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
