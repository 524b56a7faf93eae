import { renderMermaidSVG } from 'beautiful-mermaid'

/**
 * Renders a Mermaid diagram as SVG within the page when the site is built, so that readers load no
 * script and no font for it. Its colors follow the theme of the site (theme/pictures.css).
 */
export function mermaidPicture(source: string): string {
  // Vue permits no style element in a template, so the styles are removed; they are the same for
  // every diagram and are part of the theme.
  const svg = renderMermaidSVG(source, { bg: 'transparent', fg: 'currentColor' })
    .replaceAll(/<style>.*?<\/style>/gs, '')
    .replace(/ style="[^"]*"/, '')
  return `<div class="mermaid-picture" v-pre>${svg}</div>\n`
}
