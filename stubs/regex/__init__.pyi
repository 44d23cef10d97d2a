class error(Exception): ...

class RegexFlag(int):
    def __or__(self, other: int) -> RegexFlag: ...

I: RegexFlag
M: RegexFlag
S: RegexFlag

class Match:
    def group(self, group: int = 0) -> str: ...

class Pattern:
    def search(
        self, string: str, *, concurrent: bool | None = None, timeout: float | None = None
    ) -> Match | None: ...

def compile(pattern: str, flags: int = 0, *, cache_pattern: bool | None = None) -> Pattern: ...
