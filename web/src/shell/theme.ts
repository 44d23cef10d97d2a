// One place for the look: calm colours with enough contrast in both schemes, dense controls.
import { type CSSVariablesResolver, createTheme } from '@mantine/core';

const CLOSE = { 'aria-label': 'Close' };
// The heading of a dialog is no second banner of the page.
const PLAIN_HEADER = { header: { role: 'none' } };

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: { light: 7, dark: 8 },
  defaultRadius: 'sm',
  respectReducedMotion: true,
  focusRing: 'auto',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "Cascadia Mono", "JetBrains Mono", "Liberation Mono", monospace',
  headings: { fontWeight: '650', sizes: { h1: { fontSize: '1.5rem' }, h2: { fontSize: '1.15rem' } } },
  components: {
    Button: { defaultProps: { size: 'sm' } },
    TextInput: { defaultProps: { size: 'sm' } },
    Table: { defaultProps: { verticalSpacing: 'xs', highlightOnHover: true } },
    Tooltip: {
      defaultProps: { withArrow: true, openDelay: 250, events: { hover: true, focus: true, touch: true } },
    },
    // Titles in the alert's own colour are too faint on white.
    Alert: { styles: { label: { color: 'var(--mantine-color-text)' } } },
    Modal: { defaultProps: { centered: true, closeButtonProps: CLOSE, attributes: PLAIN_HEADER } },
    Drawer: { defaultProps: { closeButtonProps: CLOSE, attributes: PLAIN_HEADER } },
  },
});

/** Quiet text that is still read with ease: the library's own is too faint on white and on dark grey. */
export const cssVariables: CSSVariablesResolver = (theme) => ({
  variables: {},
  light: { '--mantine-color-dimmed': theme.colors.gray[7] },
  dark: { '--mantine-color-dimmed': theme.colors.dark[1] },
});
