import { expect, test } from 'vitest'

import { apiReferencePage, type OpenApiDocument } from '../../tools/site/api-reference.ts'
import { anchorOf } from '../../tools/site/guide.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { apiNames, bases } from '../support/served-answers.ts'

const { controller } = await controllerForFile()

async function documentOf(api: (typeof apiNames)[number]): Promise<OpenApiDocument> {
  const { payload } = await controller.app.inject(`${bases[api]}/openapi.json`)
  return JSON.parse(payload) as OpenApiDocument
}

test.each(apiNames)(
  'the reference page of the %s API contains every operation, and every link to a section of the page has a target',
  async (api) => {
    const document = await documentOf(api)
    const page = apiReferencePage(document)
    for (const [path, item] of Object.entries(document.paths)) {
      for (const method of Object.keys(item)) {
        expect(page).toContain(`\n### \`${method.toUpperCase()} ${path}\`\n`)
      }
    }
    const anchors = new Set(
      [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading)),
    )
    const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor = '']) => anchor)
    expect(links.length).toBeGreaterThan(50)
    expect(links.filter((anchor) => !anchors.has(anchor))).toEqual([])
  },
)

test('the entry of an operation shows its permission, its body, and those refusals that only some operations have', async () => {
  const page = apiReferencePage(await documentOf('management'))
  const [, section = ''] = page.split('### `POST /identities`\n')
  const [shown = ''] = section.split('\n### ')
  expect(shown).toContain('- Permission: `identity.create`\n')
  expect(shown).toContain('- Further refusals: 409 (conflict with the current state)\n')
  expect(shown).toContain('| `name` | text of at most 512 characters | yes |\n')
  expect(shown).toContain('| `enrollment.ott` | boolean, or null |  |\n')
})
