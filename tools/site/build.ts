// Builds the documentation site for `make docs`: writes the pages of the guide below
// tools/site/pages, adds the generated pages, and runs VitePress: `node tools/site/build.ts
// FOLDER`. The environment variable DOCS_BASE contains the path of the site.
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

import { startController } from '../../test/api/support/controller.ts'
import { bases } from '../../test/support/served-answers.ts'
import { apiReferencePage, type OpenApiDocument } from './api-reference.ts'
import { cliReference } from './cli-reference.ts'
import { brokenLinks, guidePages, sitePage } from './guide.ts'

const root = resolve(import.meta.dirname, '../..')
const laidOut = join(import.meta.dirname, 'pages')

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  console.error('usage: node tools/site/build.ts FOLDER')
  process.exit(2)
}

const broken = guidePages(root).flatMap((page) => brokenLinks(root, page))
if (broken.length > 0) {
  console.error(`links that lead nowhere:\n${broken.join('\n')}`)
  process.exit(1)
}

rmSync(laidOut, { recursive: true, force: true })
for (const page of guidePages(root)) {
  write(page, sitePage(root, page, readFileSync(join(root, page), 'utf8')))
}
for (const name of readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })) {
  if (/\.(png|svg)$/.test(name)) copyFileSync(join(root, 'docs', name), join(laidOut, 'docs', name))
}
write('docs/adr/index.md', decisionsPage())
await writeApiReference()
fill('docs/reference/cli.md', '<!-- help of every command -->', cliReference())
const built = spawnSync(
  process.execPath,
  [
    join(import.meta.dirname, 'node_modules/vitepress/bin/vitepress.js'),
    'build',
    import.meta.dirname,
  ],
  { stdio: 'inherit', env: { ...process.env, DOCS_FOLDER: resolve(folder) } },
)
process.exitCode = built.status ?? 1

function write(page: string, text: string): void {
  const path = join(laidOut, page)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** The page for the folder of architecture decisions, for which GitHub shows a list of files. */
function decisionsPage(): string {
  const files = readdirSync(join(root, 'docs/adr')).sort()
  const rows = files.map((file) => {
    const [, title = file] =
      /^# (.*)$/m.exec(readFileSync(join(root, 'docs/adr', file), 'utf8')) ?? []
    return `- [${title}](${file})`
  })
  return `# Decisions\n\n${rows.join('\n')}\n`
}

/**
 * Writes a page for each API, from the documents of a controller that runs in memory, and a list of
 * these pages.
 */
async function writeApiReference(): Promise<void> {
  const controller = await startController()
  const links: string[] = []
  try {
    for (const [api, base] of Object.entries(bases)) {
      const { payload } = await controller.app.inject(`${base}/openapi.json`)
      const document = JSON.parse(payload) as OpenApiDocument
      write(`docs/integrate/api-reference/${api}.md`, apiReferencePage(document))
      links.push(`- [${document.info.title}](api-reference/${api}.md)`)
    }
  } finally {
    await controller.close()
  }
  fill('docs/integrate/api-reference.md', '<!-- pages of the API reference -->', links.join('\n'))
}

/** Replaces a placeholder comment in the page with generated content. */
function fill(page: string, comment: string, generated: string): void {
  const text = readFileSync(join(laidOut, page), 'utf8')
  if (!text.includes(comment)) throw new Error(`${page} lacks ${comment}`)
  write(
    page,
    text.replace(comment, () => generated),
  )
}
