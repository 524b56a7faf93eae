// Creates a router with this name and writes its enrollment token to a file: `node router-token.mjs ADMIN.json NAME TOKEN`.
// For an existing router, writes that router's token. In both cases, allows the host of ROUTER_ADVERTISE in the router's certificate.
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'

const TIMEOUT_MS = 15_000
const ANSWER_BYTES_MAX = 4 * 1024 * 1024
/** Every router's certificate may contain these hosts, so the router's record need not allow them. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3})$/

const [adminFile, name, tokenFile] = process.argv.slice(2)
if (tokenFile === undefined || !/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
  console.error(
    'usage: node router-token.mjs ADMIN.json NAME TOKEN; NAME of letters, digits, . _ -',
  )
  process.exit(2)
}
const host = (process.env.ROUTER_ADVERTISE ?? '').replace(/:\d+$/, '')
let session = ''

class Refused extends Error {
  constructor(message, status) {
    super(message)
    this.status = status
  }
}

if (existsSync(adminFile)) await prepareRouter()
else leaveToOperator(`${adminFile} does not exist`)

async function prepareRouter() {
  try {
    const router = await routerOfName()
    await allowHost(router)
    writeToken(router)
  } catch (error) {
    // This error is final, because repeated log-ins with an old password would lock the administrator out.
    if (error.status === 401) return leaveToOperator(`the password of ${adminFile} is refused`)
    console.error(`router ${name} has no token yet: ${error.message}`)
    process.exitCode = 1
  }
}

function leaveToOperator(reason) {
  console.error(`flotilla container: ${reason}; create or change router ${name} with flotilla`)
}

async function routerOfName() {
  const { username, password } = admin()
  const opened = await ask('POST', '/authenticate?method=password', { username, password })
  session = opened.token
  const filter = encodeURIComponent(`name = "${name}"`)
  const [found] = await ask('GET', `/edge-routers?filter=${filter}`)
  const made = { name, roleAttributes: ['public'], ...allowed([]) }
  const { id } = found ?? (await ask('POST', '/edge-routers', made))
  return await ask('GET', `/edge-routers/${id}`)
}

/** The controllers use the same public host, so a router's certificate may contain this host only if the router's record allows it. */
function allowed(names) {
  if (host === '' || LOOPBACK.test(host) || names.includes(host)) return {}
  return { allowedNames: [...new Set([...names, name, host])] }
}

async function allowHost({ id, allowedNames }) {
  const change = allowed(allowedNames)
  if (change.allowedNames !== undefined) await ask('PATCH', `/edge-routers/${id}`, change)
  if (host !== '') writeFile(`${tokenFile}.host`, `${host}\n`)
}

function writeToken({ enrollmentJwt, isVerified }) {
  if (isVerified) return console.log(`router ${name} has enrolled`)
  if (typeof enrollmentJwt !== 'string') throw new Error('it has no enrollment')
  writeFile(tokenFile, `${enrollmentJwt}\n`)
  console.log(`token of router ${name} written to ${tokenFile}`)
}

function writeFile(path, text) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return
  const partial = `${path}.partial`
  writeFileSync(partial, text, { mode: 0o600 })
  chmodSync(partial, 0o600)
  renameSync(partial, path)
}

function admin() {
  return JSON.parse(readFileSync(adminFile, 'utf8'))
}

function ask(method, path, body) {
  const { promise, resolve, reject } = Promise.withResolvers()
  const { controllers, ca } = admin()
  const [first = controllers[0]] = (process.env.CONTROLLER_URLS ?? '').split(' ').filter(Boolean)
  const url = `${first}/edge/management/v1${path}`
  const text = body === undefined ? undefined : JSON.stringify(body)
  const headers = {
    'content-type': 'application/json',
    ...(session === '' ? {} : { 'net-session': session }),
  }
  const options = { method, ca: readFileSync(ca), headers, timeout: TIMEOUT_MS }
  const call = request(url, options, (answer) => {
    let told = ''
    answer.setEncoding('utf8')
    answer.on('data', (chunk) => {
      told += chunk
      if (told.length > ANSWER_BYTES_MAX) call.destroy(new Error('the answer is too long'))
    })
    answer.on('end', () => {
      const { statusCode: status } = answer
      if (status >= 200 && status < 300) resolve(JSON.parse(told).data)
      else reject(new Refused(`${method} ${path.split('?')[0]} was answered ${status}`, status))
    })
    answer.on('error', reject)
  })
  call.on('timeout', () => call.destroy(new Error('no answer in time')))
  call.on('error', reject)
  call.end(text)
  return promise
}
