import { expect, test } from 'vitest'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { readCertsOnly } from '../support/read-certs-only.ts'
import { CallerOf, client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller } = await controllerForFile()
const anybody = new CallerOf(controller)

const path = '/.well-known/est/cacerts'

test.each([`${client}${path}`, `${management}${path}`, path, `/edge/v1${path}`])(
  'the CA certificates of the network are public at %s, each once',
  async (url) => {
    const reply = await anybody.get(url, { accept: 'application/pkcs7-mime' })
    expect(reply.status, reply.text).toBe(200)
    expect(reply.headers['content-type']).toBe('application/pkcs7-mime')
    expect(reply.headers['content-transfer-encoding']).toBe('base64')
    const lines = reply.text.trimEnd().split('\n')
    expect(lines.slice(0, -1).every((line) => line.length === 64)).toBe(true)
    const { authorities } = controller
    const [roots = [], below = []] = [authorities.anchorsPem(), authorities.intermediatesPem()].map(
      (pem) => parseCertificates(pem).map(({ sha256 }) => sha256),
    )
    const read = parseCertificates(readCertsOnly(reply.text)).map(({ sha256 }) => sha256)
    expect(read, 'root certificates are last').toEqual([...below, ...roots])
  },
)

test.each(['application/json', 'text/html', 'application/pkcs7-mime;q=0', 'nonsense'])(
  'the CA certificates of the network are sent for any Accept header: %s',
  async (accept) => {
    const reply = await anybody.get(`${client}${path}`, { accept })
    expect(reply.status).toBe(200)
    expect(reply.headers['content-type']).toBe('application/pkcs7-mime')
  },
)
