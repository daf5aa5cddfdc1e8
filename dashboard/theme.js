// Light or dark: the system's choice, unless the viewer has switched. Kept in this browser.
const KEY = 'detent.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

export const isDark = () => document.documentElement.dataset.theme === 'dark';

function apply() {
  const chosen = localStorage.getItem(KEY);
  document.documentElement.dataset.theme = chosen ?? (dark.matches ? 'dark' : 'light');
  document.dispatchEvent(new Event('themechange'));
}

export function switchTheme() {
  localStorage.setItem(KEY, isDark() ? 'light' : 'dark');
  apply();
}

/** The value of a colour of style.css, for drawings on a canvas. */
export const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

dark.addEventListener('change', apply);
apply();
