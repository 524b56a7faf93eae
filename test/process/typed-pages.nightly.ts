import { mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { TestCluster, flotilla } from './support/cluster.ts'
import { linesOf, run } from './support/page.ts'

// Goal: the commands of the pages of docs/administer print the documented results on three
// controllers. Method: all pages share one cluster, as a reader would use one; each page has a
// separate folder.

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start()
  const { dir } = cluster
  symlinkSync(cluster.folder, join(dir, '.flotilla'))
  mkdirSync(join(dir, 'bin'))
  symlinkSync(flotilla, join(dir, 'bin/flotilla'))
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

test('the commands of docs/administer/log-in.md work when pasted in order', async () => {
  const output = await typed('administer/log-in.md')
  expect(output).toMatch(/"isMfaEnabled":true/)
  expect(output).toMatch(/"authQueries":\[\{[^\]]*"isTotpEnrolled":true/)
  expect(output).toMatch(/"isMfaComplete":true/)
  expect(output).toMatch(/logged in to \S+ as Berta; current context: berta\nlogged out of berta\n/)
})

/** @returns the output of the commands of the page, run with the program on PATH. */
async function typed(page: string): Promise<string> {
  const path = `PATH='${dirname(flotilla)}':$PATH\n`
  const { code, output } = await run(path + linesOf(page, cluster.port), cluster.dir)
  expect(code, `the page needs curl and openssl.\n${output}`).toBe(0)
  return output
}

test('the commands of docs/administer/terminal.md work when pasted in order', async () => {
  const output = await typed('administer/terminal.md')
  expect(output).toContain('deleted service policy dial-web\n')
  expect(output).toContain('2 created, 0 existed; 2 enrollment tokens in tokens\n')
  expect(output).toContain('logged out of net\n')
})

test('the commands of docs/administer/network-as-a-file.md work when pasted in order', async () => {
  const output = await typed('administer/network-as-a-file.md')
  expect(output.match(/^done: 0 created, \d+ updated, 0 deleted$/gm)).toHaveLength(2)
  expect(output).toContain('logged out of file\n')
})

test('the commands of docs/administer/external-providers.md work when pasted in order', async () => {
  const output = await typed('administer/external-providers.md')
  for (const name of ['google', 'entra', 'okta', 'keycloak']) {
    expect(output).toContain(`created external jwt signer ${name}, id `)
  }
  expect(output).toContain('updated external jwt signer keycloak')
  expect(output).toContain('logged out of providers\n')
})

test('the commands of docs/administer/services-and-policies.md work when pasted in order', async () => {
  const output = await typed('administer/services-and-policies.md')
  // Connects through the edge router to the controller to which the service connects.
  expect(output).toContain('"healthy":true')
  expect(output).toMatch(/^ops-laptop -> health\ndial: yes$/m)
  expect(output).toMatch(/^ops-laptop -> health\ndial: no$/m)
})

test('the commands of docs/administer/enrollment.md work when pasted in order', async () => {
  const { dir } = cluster
  const told = `\ncat gate-client.pem gate-server.pem > gate.pem\n`
  const { code, output } = await run(linesOf('administer/enrollment.md', cluster.port) + told, dir)
  expect(code, `the page needs curl and openssl.\n${output}`).toBe(0)

  expect(output).toMatch(/^desktop\.pem: OK$/m)
  expect(output).toMatch(/"name":"desktop"/)
  expect(output).toMatch(/^enrolled: tablet\.json$/m)
  expect(output).toMatch(/"name":"plant-pump-1"/)
  expect(output).toMatch(/"name":"valve"/)
  expect(output).toMatch(/DNS:gate\.example\.net/)
  const enrolling = join(dir, 'enrolling')
  expect(statSync(join(enrolling, 'tablet.json')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(enrolling, 'gate.pem'), 'utf8').match(/BEGIN/g)?.length).toBeGreaterThan(
    1,
  )

  // If an identity is enrolled with one controller, another controller shows the same identity.
  const client = await cluster.loggedIn(3)
  const { body } = await client.request('GET', '/edge/management/v1/identities?limit=100')
  const names = (body.data as { name: string }[]).map(({ name }) => name)
  expect(names).toEqual(
    expect.arrayContaining(['desktop', 'tablet', 'Alice', 'plant-pump-1', 'plant-pump-2', 'valve']),
  )
})

test('an interrupted enrollment resumes at real controllers, and a used token is refused', async () => {
  const client = await cluster.loggedIn(1)
  const body = { name: 'notebook', type: 'Device', isAdmin: false, enrollment: { ott: true } }
  const made = await client.request('POST', '/edge/management/v1/identities', { body })
  const { id } = made.body.data as { id: string }
  const { body: shown } = await client.request('GET', `/edge/management/v1/identities/${id}`)
  const { jwt } = (shown.data as { enrollment: { ott: { jwt: string } } }).enrollment.ott
  // The token names the first controller, but any controller may lead: the called controller
  // forwards the request.
  const script = `
    umask 077
    printf %s '${jwt}' > notebook.jwt
    ${flotilla} identity enroll - --cert notebook.pem --key notebook.key --ca ca.pem < notebook.jwt
    mv notebook.pem first.pem
    ${flotilla} identity enroll notebook.jwt --cert notebook.pem --key notebook.key --ca ca.pem
    cmp first.pem notebook.pem
    ! ${flotilla} identity enroll notebook.jwt --out other.json
    ls
    curl -sS --fail-with-body --cacert ca.pem --cert notebook.pem --key notebook.key -H 'content-type: application/json' \
      -d '{}' 'https://127.0.0.1:${cluster.port + 2}/edge/client/v1/authenticate?method=cert'
  `
  const { code, output } = await run(script, cluster.dir)
  expect(code, output).toBe(0)
  expect(output).toContain('the token was already used')
  expect(output).not.toContain('other.json')
  expect(output).toContain(`"identityId":"${id}"`)
})
