import { readFileSync } from 'node:fs'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { listenerTlsOptions } from '../../src/api/http/transport/tls.ts'

// A server with the minimum cost of a log-in by certificate: the TLS handshake of a controller's
// listener, and a response of the same size.

const [certPath = '', keyPath = ''] = process.argv.slice(2)
const identity = { cert: readFileSync(certPath), key: readFileSync(keyPath) }
const body = JSON.stringify({ data: 'x'.repeat(2000) })
const server = https.createServer({ ...listenerTlsOptions, ...identity }, (request, response) => {
  request.resume()
  request.on('end', () => {
    response.setHeader('content-type', 'application/json')
    response.setHeader('content-length', Buffer.byteLength(body))
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
// Exits when the parent process has ended.
process.on('disconnect', () => process.exit())
