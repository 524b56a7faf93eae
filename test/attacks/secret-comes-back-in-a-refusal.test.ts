import { expect, test } from 'vitest'
import { CallerOf, client, fabric, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'

// The attack: a refusal that repeats its input copies a secret to other places: proxy logs,
// screens, error reports.
const { root, controller } = await controllerForFile()
const marker = 'hunter2-of-somebody'

type Schema = Readonly<Record<string, unknown>>
interface Place {
  readonly method: string
  readonly url: string
  readonly schema: Schema
}

async function placesOf(base: string): Promise<Place[]> {
  const document = JSON.parse((await root.get(`${base}/openapi.json`)).text) as {
    paths: Record<
      string,
      Record<string, { requestBody?: { content: Record<string, { schema: Schema }> } }>
    >
    components: { schemas: Record<string, Schema> }
  }
  const named = (schema: Schema): Schema => {
    const name = schema['$ref']
    if (typeof name !== 'string') return schema
    return document.components.schemas[name.split('/').at(-1) ?? ''] ?? {}
  }
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) => {
      const schema = requestBody?.content['application/json']?.schema
      if (schema === undefined) return []
      const url = `${base}${path.replaceAll(/\{[^}]+\}/g, 'some-id')}`
      return [{ method: method.toUpperCase(), url, schema: named(schema) }]
    }),
  )
}

const secrets = ['password', 'currentPassword', 'token', 'code', 'jwt', 'ticket', 'clientCsr']

/** Bodies with a secret in the wrong place. */
function bodiesFor({ properties = {} }: Schema): unknown[] {
  const inPlaceOfMembers = Object.entries(properties as Readonly<Record<string, Schema>>)
    .filter(([, { type }]) => [type].flat().some((one) => one === 'object' || one === 'array'))
    .map(([name]) => ({ [name]: marker }))
  const inItsOwnField = secrets.flatMap((name) => [
    { [name]: marker.repeat(400) },
    { [name]: [marker] },
    { [name]: { value: marker } },
    { [name.toUpperCase()]: marker, [name]: marker },
  ])
  return [marker, [marker], ...inPlaceOfMembers, ...inItsOwnField]
}

test.each([client, management, fabric])(
  'an error response of %s repeats neither a body that is only a string, nor a string in the place of an object, nor the value of a secret field',
  async (base) => {
    const caller = new CallerOf(controller)
    let asked = 0
    for (const { method, url, schema } of await placesOf(base)) {
      for (const body of bodiesFor(schema)) {
        // Every operation without a required permission is also called without a session.
        for (const who of [root, caller]) {
          const headers: Record<string, string> = { 'content-type': 'application/json' }
          if (who.token !== null) headers['zt-session'] = who.token
          const reply = await controller.app.inject({
            method: method as 'POST',
            url,
            headers,
            payload: JSON.stringify(body),
            // Each time another one, because a limit per source would refuse most requests.
            remoteAddress: `10.${(asked >> 8) & 255}.${asked & 255}.1`,
          })
          asked += 1
          // Copies of the database are limited for all callers together.
          const isLimited = reply.statusCode === 429 && !/\/database(\/|$)/.test(url)
          expect(isLimited, `${method} ${url}`).toBe(false)
          expect(
            reply.payload,
            `${method} ${url} ${JSON.stringify(body).slice(0, 80)}`,
          ).not.toContain(marker)
          expect(reply.statusCode).toBeLessThan(500)
        }
      }
    }
    expect(asked).toBeGreaterThan(100)
  },
)

test('the error response for a refused URL does not contain the credentials in the URL', async () => {
  const body = {
    name: 'signer',
    issuer: 'signer',
    audience: 'us',
    enabled: true,
    jwksEndpoint: `https://me:${marker}@issuer.test/`,
  }
  const reply = await root.call('POST', `${management}/external-jwt-signers`, body)
  expect(reply.status).toBe(400)
  expect(reply.text).not.toContain(marker)
})
