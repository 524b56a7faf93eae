import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'

// The pages of the documentation, their order in the sidebar, and the targets of their links.

/**
 * Sections of the sidebar in reading order. Within a section, pages that `first` does not list come
 * last, sorted by title.
 */
const sections: readonly Section[] = [
  { folder: 'start', text: 'Start', first: ['evaluate', 'install', 'production'] },
  { folder: 'concepts', text: 'Concepts', first: ['planes', 'write', 'dial', 'membership'] },
  { folder: 'operate', text: 'Operate', first: ['README', 'create-a-cluster'] },
  { folder: 'administer', text: 'Administer', first: ['terminal', 'services-and-policies'] },
  { folder: 'integrate', text: 'Integrate', first: ['api', 'api-reference', 'errors', 'events'] },
  { folder: 'reference', text: 'Reference', first: [] },
  { folder: 'internals', text: 'Internals', first: ['engine', 'way-of-a-write'] },
  { folder: 'adr', text: 'Decisions', first: ['index'] },
]
/** Section for pages directly in docs/. */
const TOP_LEVEL = 'More'

interface Section {
  readonly folder: string
  readonly text: string
  readonly first: readonly string[]
}

export interface SidebarItem {
  readonly text: string
  readonly link?: string
  readonly collapsed?: boolean
  readonly items?: readonly SidebarItem[]
}

/** Pages outside of docs/ that are part of the documentation. */
export const pagesOutside = ['README.md', 'CHANGELOG.md', 'SECURITY.md', 'deploy/README.md']

/** @returns the paths of all pages of the documentation, relative to the root of the project. */
export function guidePages(root: string): string[] {
  const inDocs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name))
    .sort()
  return [...pagesOutside, ...inDocs]
}

/** The sidebar, which contains each page of docs/ once, in the section of its folder. */
export function sidebarOf(root: string): SidebarItem[] {
  const pages = guidePages(root).map((page) => ({
    page,
    title: titleOf(readFileSync(join(root, page), 'utf8')),
  }))
  const known = new Set(sections.map(({ folder }) => folder))
  const groups = sections.map(({ folder, text, first }) => {
    const inFolder = pages.filter(({ page }) => folderOf(page) === folder)
    const rank = (page: string): number => {
      const place = first.indexOf(posix.basename(page, '.md'))
      return place === -1 ? first.length : place
    }
    inFolder.sort((a, b) => rank(a.page) - rank(b.page) || order(a, b))
    return { text, items: inFolder.map(item) }
  })
  const others = pages.filter(({ page }) => !known.has(folderOf(page)) && page !== 'README.md')
  return [...groups, { text: TOP_LEVEL, items: others.map(item) }]
    .filter(({ items }) => items.length > 0)
    .map((group) => ({ ...group, collapsed: true }))
}

interface Titled {
  readonly page: string
  readonly title: string
}

/** Sorts decisions by number and other pages by title. */
function order(a: Titled, b: Titled): number {
  if (folderOf(a.page) === 'adr') return a.page < b.page ? -1 : 1
  return a.title.localeCompare(b.title, 'en')
}

function item({ page, title }: Titled): SidebarItem {
  return { text: title, link: `/${page.slice(0, -'.md'.length)}` }
}

/** The folder below docs/ that contains the page. */
function folderOf(page: string): string {
  const parts = page.split('/')
  return parts[0] === 'docs' && parts.length > 2 ? (parts[1] ?? '') : ''
}

function titleOf(text: string): string {
  const [, title = ''] = /^# (.*)$/m.exec(text) ?? []
  return title.replaceAll('`', '')
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```.*?^```$/gms, '')
}

/** The anchor of a heading on GitHub; the site uses the same. */
export function anchorOf(heading: string): string {
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

/** @returns the links of a page whose file or heading does not exist. */
export function brokenLinks(root: string, page: string): string[] {
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

/**
 * The text of a page for the site. A link to a file that is not a page becomes plain text, and a
 * link to a folder becomes a link to the page in its place.
 */
export function sitePage(root: string, page: string, text: string): string {
  const pages = new Set(guidePages(root))
  const parts = text.split(/(^```.*?^```$)/gms)
  const linked = parts.map((part, at) =>
    at % 2 === 1
      ? part
      : part.replaceAll(/(?<!!)\[([^\]]*)\]\(([^)\s]+)\)/g, (all, label: string, link: string) => {
          if (/^[a-z]+:|^#/.test(link)) return all
          const [path = '', anchor] = link.split('#')
          const target = posix.join(posix.dirname(page), path).replace(/\/$/, '')
          if (pages.has(target)) return all
          const index = `${target}/README.md`
          const isFolder = statSync(join(root, target)).isDirectory()
          const slash = path.endsWith('/') ? '' : '/'
          if (isFolder && pages.has(index)) return `[${label}](${path}${slash}README.md)`
          if (isFolder && target.startsWith('docs/')) return `[${label}](${path}${slash}index.md)`
          return anchor === undefined ? label : all
        }),
  )
  // Removes comments to authors, which the site would show as text.
  return linked.join('').replaceAll(/^<!-- (?!pages of|help of).*? -->$/gm, '')
}
