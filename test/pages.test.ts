import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { brokenLinks, guidePages, type SidebarItem, sidebarOf } from '../tools/site/guide.ts'

// Goal: each link of a page leads to an existing file and heading; readers find each page in the
// sidebar.

const root = resolve(import.meta.dirname, '..')
const pages = guidePages(root)

test('the heading of a decision record has the number in its file name', () => {
  const decisions = pages.filter((page) => page.startsWith('docs/adr/'))
  const headings = decisions.map((page) => [page, readFileSync(join(root, page), 'utf8')] as const)
  const wrong = headings.filter(
    ([page, text]) => !text.startsWith(`# ${Number(/\d{4}/.exec(page)?.[0])}. `),
  )
  expect(wrong.map(([page]) => page)).toEqual([])
})

test('every link of a page leads to an existing file and heading', () => {
  expect(pages.length).toBeGreaterThan(30)
  expect(pages.flatMap((page) => brokenLinks(root, page))).toEqual([])
})

function linksOf(items: readonly SidebarItem[]): string[] {
  return items.flatMap((item) => [item.link ?? [], linksOf(item.items ?? [])].flat())
}

test('the sidebar of the docs lists each page once, with a title', () => {
  const sidebar = sidebarOf(root)
  const listed = linksOf(sidebar).map((link) => `${link.slice(1)}.md`)
  // The README is the first page of the site.
  expect(listed.sort()).toEqual(pages.filter((page) => page !== 'README.md').sort())
  const titles = sidebar.flatMap(({ items = [] }) => items.map(({ text }) => text))
  expect(titles.filter((title) => title === '')).toEqual([])
})

test('the sidebar of the docs has a section for each folder of docs', () => {
  const [more] = sidebarOf(root).slice(-1)
  expect(linksOf(more?.items ?? []).filter((link) => /^\/docs\/.*\//.test(link))).toEqual([])
})
