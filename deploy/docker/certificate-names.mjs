// Exits with 0 if the first certificate in the PEM file contains the host: `node certificate-names.mjs CERTIFICATE HOST`.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'

const [file, host] = process.argv.slice(2)
const certificate = new X509Certificate(readFileSync(file))
const named = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)
process.exitCode = named === undefined ? 1 : 0
