// Forming a cluster where another one goes on would make a second one of the same name. A pod that waits for its ticket says
// so on the mesh port (`wait`), and the one that is to form asks all others first (`ask`): those that have data of a cluster
// never say it.
//
//   first-controller.mjs wait PORT             says it until it is stopped
//   first-controller.mjs ask PORT HOST...      exit 0: each HOST waits for a ticket; 3: one of them is a controller
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

/** A controller takes TLS alone on that port; whatever else goes wrong is no answer, and is asked again. */
function ask(host) {
  // HOST=PORT where the ports of several are not the same.
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

/** Which controller it is does not matter: in its own network nobody else takes TLS on the mesh port. */
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
