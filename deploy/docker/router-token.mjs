// Makes a router of this name and writes the token that it enrolls by: `node router-token.mjs ADMIN.json NAME TOKEN`.
// Repeated, it writes the token of the router that is there; one that has enrolled is left alone.
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'

const TIMEOUT_MS = 15_000
const ANSWER_BYTES_MAX = 4 * 1024 * 1024

const [adminFile, name, tokenFile] = process.argv.slice(2)
if (tokenFile === undefined || !/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
  console.error(
    'usage: node router-token.mjs ADMIN.json NAME TOKEN; NAME of letters, digits, . _ -',
  )
  process.exit(2)
}
const admin = JSON.parse(readFileSync(adminFile, 'utf8'))
const ca = readFileSync(admin.ca)
let session = ''

try {
  await writeToken()
} catch (error) {
  console.error(`router ${name} has no token yet: ${error.message}`)
  process.exitCode = 1
}

async function writeToken() {
  const { username, password } = admin
  const opened = await ask('POST', '/authenticate?method=password', { username, password })
  session = opened.token
  const filter = encodeURIComponent(`name = "${name}"`)
  const [found] = await ask('GET', `/edge-routers?filter=${filter}`)
  const { id } = found ?? (await ask('POST', '/edge-routers', { name }))
  const { enrollmentJwt, isVerified } = await ask('GET', `/edge-routers/${id}`)
  if (isVerified) return console.log(`router ${name} has enrolled`)
  if (typeof enrollmentJwt !== 'string') throw new Error('it has no enrollment')
  const partial = `${tokenFile}.partial`
  writeFileSync(partial, `${enrollmentJwt}\n`, { mode: 0o600 })
  chmodSync(partial, 0o600)
  if (!existsSync(tokenFile) || readFileSync(tokenFile, 'utf8') !== `${enrollmentJwt}\n`)
    renameSync(partial, tokenFile)
  console.log(`token of router ${name} written to ${tokenFile}`)
}

function ask(method, path, body) {
  const { promise, resolve, reject } = Promise.withResolvers()
  const url = `${admin.controllers[0]}/edge/management/v1${path}`
  const text = body === undefined ? undefined : JSON.stringify(body)
  const headers = {
    'content-type': 'application/json',
    ...(session === '' ? {} : { 'net-session': session }),
  }
  const call = request(url, { method, ca, headers, timeout: TIMEOUT_MS }, (answer) => {
    let told = ''
    answer.setEncoding('utf8')
    answer.on('data', (chunk) => {
      told += chunk
      if (told.length > ANSWER_BYTES_MAX) call.destroy(new Error('the answer is too long'))
    })
    answer.on('end', () => {
      const isDone = answer.statusCode >= 200 && answer.statusCode < 300
      if (isDone) resolve(JSON.parse(told).data)
      else reject(new Error(`${method} ${path.split('?')[0]} was answered ${answer.statusCode}`))
    })
    answer.on('error', reject)
  })
  call.on('timeout', () => call.destroy(new Error('no answer in time')))
  call.on('error', reject)
  call.end(text)
  return promise
}
