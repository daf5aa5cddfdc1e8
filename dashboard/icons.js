// The page's drawings, as strokes on a grid of 24.
import { svg } from './dom.js';

const PATHS = {
  now: 'M3 12h4l3-8 4 16 3-8h4',
  wheel: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 12l6-7',
  forecast: 'M4 20V14M9 20V8M14 20v-9M19 20V4',
  queues: 'M4 6h16M4 12h16M4 18h10',
  tasks: 'M9 6h11M9 12h11M9 18h11M4 6l1 1 2-2M4 12l1 1 2-2M4 18l1 1 2-2',
  errors: 'M12 4L21 20H3zM12 10v4M12 17h.01',
  workers: 'M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M4 20c1-4 4-6 8-6s7 2 8 6',
  menu: 'M6 12h.01M12 12h.01M18 12h.01',
  schedules: 'M5 6h14v14H5zM5 10h14M9 3v4M15 3v4',
  cluster: 'M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01',
  theme: 'M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18',
  help: 'M9 9a3 3 0 1 1 4 2.8c-.7.3-1 .8-1 1.7M12 17h.01',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14M16 16l5 5',
};

export function icon(name) {
  return svg('svg', { viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true' },
    svg('path', { d: PATHS[name] }));
}

/** The mark: a wheel with notches and a hand. */
export function mark() {
  const notches = Array.from({ length: 12 }, (_, i) => {
    const turn = (i * Math.PI) / 6;
    const at = (radius) => `${(16 + radius * Math.sin(turn)).toFixed(2)} ${(16 - radius * Math.cos(turn)).toFixed(2)}`;
    return `M${at(11)}L${at(14)}`;
  });
  return svg('svg', { viewBox: '0 0 32 32', class: 'mark', 'aria-hidden': 'true' },
    svg('path', { d: notches.join('') }), svg('circle', { cx: 16, cy: 16, r: 9.5 }),
    svg('path', { d: 'M16 16L20.5 9.5', class: 'mark-hand' }));
}
