class error(Exception): ...

class Options:
    max_mem: int
    log_errors: bool
    dot_nl: bool
    never_capture: bool
    case_sensitive: bool

class _Match:
    def span(self, group: int = 0) -> tuple[int, int]: ...

class _Regexp:
    @property
    def programsize(self) -> int: ...
    @property
    def reverseprogramsize(self) -> int: ...
    def search(self, text: bytes | str) -> _Match | None: ...

def compile(pattern: str, options: Options | None = None) -> _Regexp: ...
