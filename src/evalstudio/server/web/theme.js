// Sets the colour scheme before the first paint. A file of its own: inline scripts are forbidden by the server.
(() => {
  let chosen = null;
  try {
    chosen = window.localStorage.getItem('mantine-color-scheme-value');
  } catch {
    // Storage may be off; the system's scheme stands.
  }
  const dark = window.matchMedia('(prefers-color-scheme: dark)').matches;
  const scheme = chosen === 'light' || chosen === 'dark' ? chosen : dark ? 'dark' : 'light';
  document.documentElement.setAttribute('data-mantine-color-scheme', scheme);
})();
