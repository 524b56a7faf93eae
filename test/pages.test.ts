import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'

// Goal: a link of a page leads to a file that is there, and to a heading of it.

const root = resolve(import.meta.dirname, '..')
const pages = [
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'deploy/README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]

function withoutCode(text: string): string {
  return text.replaceAll(/^```.*?^```$/gms, '')
}

/** As GitHub names the heading. */
function anchorOf(heading: string): string {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

function anchorsIn(text: string): Set<string> {
  const found = new Set<string>()
  for (const [, heading = ''] of withoutCode(text).matchAll(/^#+ (.*)$/gm)) {
    const anchor = anchorOf(heading)
    let name = anchor
    for (let at = 1; found.has(name); at += 1) name = `${anchor}-${at}`
    found.add(name)
  }
  return found
}

/** @returns the links of a page that lead nowhere. */
function brokenIn(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8')
  const links = [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)
  return links
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [path = '', anchor] = link.split('#')
      const file = path === '' ? join(root, page) : join(root, dirname(page), path)
      if (!existsSync(file)) return true
      return anchor !== undefined && !anchorsIn(readFileSync(file, 'utf8')).has(anchor)
    })
    .map((link) => `${page}: ${link}`)
}

test('a decision has the number of its file', () => {
  const decisions = pages.filter((page) => page.startsWith('docs/adr/'))
  const headings = decisions.map((page) => [page, readFileSync(join(root, page), 'utf8')] as const)
  const wrong = headings.filter(
    ([page, text]) => !text.startsWith(`# ${Number(/\d{4}/.exec(page)?.[0])}. `),
  )
  expect(wrong.map(([page]) => page)).toEqual([])
})

test('every link of a page leads to a file, and to a heading of it', () => {
  expect(pages.length).toBeGreaterThan(30)
  expect(pages.flatMap(brokenIn)).toEqual([])
})
