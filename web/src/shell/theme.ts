// One place for the look: calm colours with enough contrast in both schemes, dense controls.
import { type CSSVariablesResolver, createTheme, rem } from '@mantine/core';

const CLOSE = { 'aria-label': 'Close' };
// The heading of a dialog is no second banner of the page.
const PLAIN_HEADER = { header: { role: 'none' } };

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: { light: 7, dark: 8 },
  defaultRadius: 'sm',
  respectReducedMotion: true,
  focusRing: 'auto',
  fontFamily:
    '"Inter Variable", system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "Cascadia Mono", "JetBrains Mono", "Liberation Mono", monospace',
  // One scale: 12 for what is beside, 13 for tables and forms, 14 for text, 15, 18 and 22 for headings.
  fontSizes: { xs: rem(12), sm: rem(13), md: rem(14), lg: rem(16), xl: rem(20) },
  lineHeights: { xs: '1.4', sm: '1.45', md: '1.5', lg: '1.5', xl: '1.4' },
  headings: {
    fontWeight: '650',
    sizes: {
      h1: { fontSize: rem(22), lineHeight: '1.3' },
      h2: { fontSize: rem(18), lineHeight: '1.35' },
      h3: { fontSize: rem(15), lineHeight: '1.4' },
      h4: { fontSize: rem(15), lineHeight: '1.4' },
    },
  },
  components: {
    Button: { defaultProps: { size: 'sm' } },
    TextInput: { defaultProps: { size: 'sm' } },
    Table: {
      defaultProps: { verticalSpacing: 8, highlightOnHover: true },
      styles: {
        th: {
          fontSize: rem(12),
          fontWeight: 600,
          color: 'var(--mantine-color-dimmed)',
          whiteSpace: 'nowrap',
        },
      },
    },
    // A hundred options that nobody opened would be made, and measured, with every page that has a choice.
    Combobox: { defaultProps: { keepMounted: false } },
    Paper: { defaultProps: { radius: 'md' } },
    Tooltip: {
      defaultProps: { withArrow: true, openDelay: 250, events: { hover: true, focus: true, touch: true } },
    },
    Badge: { defaultProps: { tt: 'none' } },
    // Titles in the alert's own colour are too faint on white.
    Alert: { styles: { label: { color: 'var(--mantine-color-text)' } } },
    Modal: { defaultProps: { centered: true, closeButtonProps: CLOSE, attributes: PLAIN_HEADER } },
    Drawer: { defaultProps: { closeButtonProps: CLOSE, attributes: PLAIN_HEADER } },
  },
});

/** Colours that differ by scheme, for style sheets: the build would rewrite light-dark() in them. */
export const cssVariables: CSSVariablesResolver = (theme) => ({
  variables: {},
  light: {
    // Quiet text that is still read with ease: the library's own is too faint on white and on dark grey.
    '--mantine-color-dimmed': theme.colors.gray[7],
    '--page': '#f7f8fa',
    '--track': theme.colors.gray[2],
    '--range': theme.colors.indigo[2],
    '--range-mark': theme.colors.indigo[7],
    '--added': '#d3f9e3',
    '--added-text': '#08462d',
    '--removed': '#ffe3e3',
    '--removed-text': '#7a1414',
  },
  dark: {
    '--mantine-color-dimmed': theme.colors.dark[1],
    '--page': '#1b1c1f',
    '--track': theme.colors.dark[4],
    '--range': theme.colors.indigo[8],
    '--range-mark': theme.colors.indigo[3],
    '--added': '#0b4a33',
    '--added-text': '#c9f7de',
    '--removed': '#5c1a1a',
    '--removed-text': '#ffd6d6',
  },
});
