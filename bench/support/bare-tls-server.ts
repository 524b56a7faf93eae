import { readFileSync } from 'node:fs'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { listenerTls } from '../../src/api/http/transport/tls.ts'

// The least that a log-in by certificate can be: the handshake of a controller's listener, and an
// answer of its size.

const [certPath = '', keyPath = ''] = process.argv.slice(2)
const identity = { cert: readFileSync(certPath), key: readFileSync(keyPath) }
const body = JSON.stringify({ data: 'x'.repeat(2000) })
const server = https.createServer({ ...listenerTls, ...identity }, (request, response) => {
  request.resume()
  request.on('end', () => {
    response.setHeader('content-type', 'application/json')
    response.setHeader('content-length', Buffer.byteLength(body))
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
// An orphan has nobody to answer.
process.on('disconnect', () => process.exit())
