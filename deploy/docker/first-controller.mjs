// Prevents two clusters with the same name: a pod must not create a cluster if another pod already belongs to one. A pod that waits for its
// ticket reports on the mesh port that it has no data (`wait`). The pod that is to create the cluster first asks all other pods (`ask`). A
// pod with the data of a cluster never sends this report.
//
//   first-controller.mjs wait PORT             sends the report to each client until it is stopped
//   first-controller.mjs ask PORT HOST...      exit 0: each HOST waits for a ticket; exit 3: a HOST is a controller
import { createServer, get } from 'node:http'
import { connect } from 'node:tls'

const WAITING = 'flotilla: waiting for a ticket\n'
const PAUSE_MS = Number(process.env.FIRST_CONTROLLER_PAUSE_MS ?? '1000')
const ANSWER_MS = 3000

const [verb, port, ...hosts] = process.argv.slice(2)
if (verb === 'wait') {
  createServer((_request, response) => response.end(WAITING))
    .on('error', (error) => {
      console.error(
        `flotilla container: others cannot be told that this one waits: ${error.message}`,
      )
      process.exit(1)
    })
    .listen(Number(port))
} else if (verb === 'ask') {
  process.exitCode = await askAll()
} else {
  console.error('usage: first-controller.mjs wait PORT | ask PORT HOST...')
  process.exitCode = 2
}

async function askAll() {
  const told = new Map()
  const open = new Set(hosts)
  while (open.size > 0) {
    for (const host of open) {
      const found = await ask(host)
      if (found === 'waiting') open.delete(host)
      else if (found === 'controller') {
        console.error(
          `flotilla container: ${host} is a controller of a cluster that was formed before`,
        )
        return 3
      } else if (told.get(host) !== found) {
        console.error(
          `flotilla container: nothing is formed before ${host} says that it has no data: ${found}`,
        )
        told.set(host, found)
      }
    }
    if (open.size > 0) await new Promise((done) => setTimeout(done, PAUSE_MS))
  }
  return 0
}

/** On this port, a controller accepts only TLS. After any other failure, the caller asks again. */
function ask(host) {
  // HOST=PORT if the hosts use different ports.
  const [name, own = port] = host.split('=')
  const target = { host: name, port: Number(own), timeout: ANSWER_MS }
  return new Promise((done) => {
    const call = get({ ...target, agent: false }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk) => (text = (text + chunk).slice(0, 200)))
      answer.on('close', () => done(text === WAITING ? 'waiting' : 'it answers something else'))
    })
    call.on('timeout', () => call.destroy(new Error('no answer in time')))
    call.on('error', (error) => {
      void speaksTls(target).then((isTls) => done(isTls ? 'controller' : error.message))
    })
  })
}

/**
 * The certificate is not verified, because it does not matter which controller responds: in this network, no other program accepts TLS on
 * the mesh port.
 */
function speaksTls(target) {
  return new Promise((done) => {
    const socket = connect({ ...target, rejectUnauthorized: false })
    const end = (isTls) => {
      socket.destroy()
      done(isTls)
    }
    socket.on('secureConnect', () => end(true))
    socket.on('timeout', () => end(false))
    socket.on('error', () => end(false))
  })
}
