import { renderMermaidSVG } from 'beautiful-mermaid'

/**
 * A picture as SVG within the page, made when the site is built: readers load no script and no font
 * for it. Colors follow the theme of the site (theme/pictures.css).
 */
export function mermaidPicture(source: string): string {
  // Vue takes no style element in a template; the rules are the same for every picture.
  const svg = renderMermaidSVG(source, { bg: 'transparent', fg: 'currentColor' })
    .replaceAll(/<style>.*?<\/style>/gs, '')
    .replace(/ style="[^"]*"/, '')
  return `<div class="mermaid-picture" v-pre>${svg}</div>\n`
}
