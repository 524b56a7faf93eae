import { join } from 'node:path'
import { defineConfig } from 'vitepress'

import { anchorOf, sidebarOf } from '../guide.ts'
import { mermaidPicture } from './mermaid.ts'

const pages = join(import.meta.dirname, '../pages')
const sidebar = sidebarOf(pages)

export default defineConfig({
  title: 'Flotilla',
  description: 'An OpenZiti-compatible controller cluster, router and console',
  base: process.env['DOCS_BASE'] ?? '/',
  srcDir: pages,
  outDir: process.env['DOCS_FOLDER'] ?? join(import.meta.dirname, '../../../dist/docs'),
  cacheDir: join(import.meta.dirname, '../node_modules/.vite'),
  rewrites: { 'README.md': 'index.md' },
  markdown: {
    // Makes anchors as GitHub does, so that one test can check the links for GitHub and for this
    // site.
    anchor: { slugify: anchorOf },
    toc: { slugify: anchorOf },
    config(md) {
      // Shows a `<name>` in a sentence as text, because nearly all of them are placeholders and not
      // HTML.
      md.set({ html: false })
      const { fence } = md.renderer.rules
      md.renderer.rules.fence = (tokens, at, ...others) => {
        const token = tokens[at]
        if (token?.info === 'mermaid') return mermaidPicture(token.content)
        return fence?.(tokens, at, ...others) ?? ''
      }
    },
  },
  themeConfig: {
    sidebar,
    outline: { level: [2, 3] },
    search: { provider: 'local' },
    nav: sidebar.slice(0, 6).map(({ text, items }) => ({ text, link: items?.[0]?.link ?? '/' })),
  },
})
