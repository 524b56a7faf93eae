import { expect, test } from 'vitest'
import { CallerOf, management } from '../api/support/caller.ts'
import { startController } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'

// The attack: somebody who may write JWT signers makes the controller send requests to its own
// host, or to a metadata service that returns the credentials of the machine to local callers, or
// sends clients that log in to such an address.
const { root } = await controllerForFile()
const signers = `${management}/external-jwt-signers`
let serial = 0

function signer(more: object): object {
  serial += 1
  const name = `signer ${serial}`
  const jwksEndpoint = 'https://issuer.test/keys'
  return { name, issuer: name, audience: 'us', enabled: true, jwksEndpoint, ...more }
}

const ownHost = [
  'http://127.0.0.1/keys',
  'http://127.8.9.10/keys',
  'http://127.1/keys',
  'http://2130706433/keys',
  'http://0x7f000001/keys',
  'http://0x7f.0.0.1/keys',
  'http://0177.0.0.1/keys',
  'http://017700000001/keys',
  'http://127.0.0.1./keys',
  'http://①②⑦.⓪.⓪.①/keys',
  'http://localhost/keys',
  'http://LOCALHOST:8080/keys',
  'http://localhost./keys',
  'http://localhost../keys',
  'http://%6c%6f%63alhost/keys',
  'http://a.localhost/keys',
  'http://[::1]/keys',
  'http://[0:0:0:0:0:0:0:1]/keys',
  'http://[::ffff:127.0.0.1]/keys',
  'http://[::ffff:7f00:1]/keys',
  'http://[::127.0.0.1]/keys',
  'http://[64:ff9b::7f00:1]/keys',
  'http://[2002:7f00:1::]/keys',
  'http://0.0.0.0/keys',
  'http://0/keys',
  'http://[::]/keys',
  'http://[::ffff:0.0.0.0]/keys',
]
const metadata = [
  'http://169.254.169.254/latest/meta-data/',
  'http://2852039166/latest/meta-data/',
  'http://0xa9fea9fe/latest/meta-data/',
  'http://0251.0376.0251.0376/latest/meta-data/',
  'http://[::ffff:169.254.169.254]/latest/meta-data/',
  'http://[fd00:ec2::254]/latest/meta-data/',
  'http://[fd00:0ec2:0:0:0:0:0:0254]/latest/meta-data/',
  'http://100.100.100.200/latest/meta-data/',
  'http://168.63.129.16/metadata/instance',
  'http://metadata.google.internal/computeMetadata/v1/',
  'http://METADATA.google.internal./computeMetadata/v1/',
  'http://169.254.9.9/keys',
  'http://[64:ff9b::a9fe:a9fe]/latest/meta-data/',
  'http://[2002:a9fe:a9fe::]/latest/meta-data/',
  'http://[fe80::1]/keys',
  'http://[febf::1]/keys',
]

test.each([...ownHost, ...metadata])(
  'the address %s is refused as jwksEndpoint and as externalAuthUrl at create, replace and patch',
  async (address) => {
    const made = await root.call('POST', signers, signer({}))
    expect(made.status, made.text).toBe(201)
    const path = `${signers}/${(made.body.data as { id: string }).id}`
    for (const field of ['jwksEndpoint', 'externalAuthUrl']) {
      const replies = [
        await root.call('POST', signers, signer({ [field]: address })),
        await root.call('PUT', path, signer({ [field]: address })),
        await root.call('PATCH', path, { [field]: address }),
      ]
      for (const reply of replies) {
        expect(reply.status, `${field}: ${reply.text}`).toBe(400)
        expect(reply.body.error?.cause?.['field']).toBe(field)
      }
    }
    expect((await root.get(path)).text).not.toContain(address)
  },
)

test('the configuration may allow signer endpoints on this host, but never a link-local or metadata address', async () => {
  const allowing = await startController({}, undefined, { allowsReservedSignerHosts: true })
  try {
    const caller = new CallerOf(allowing)
    caller.token = allowing.openSession('admin-id')
    const written = async (field: string, address: string): Promise<unknown> => {
      const reply = await caller.call('POST', signers, signer({ [field]: address }))
      return reply.status === 201 ? 'written' : reply.body.error?.cause?.['reason']
    }
    for (const field of ['jwksEndpoint', 'externalAuthUrl']) {
      expect(await written(field, 'http://127.0.0.1/keys')).toBe('written')
      for (const address of metadata) {
        expect(await written(field, address), address).toBe(
          `${field} must not lead to a link-local or metadata address`,
        )
      }
    }
  } finally {
    await allowing.close()
  }
})
