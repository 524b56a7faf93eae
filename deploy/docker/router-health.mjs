// Exit 0: the health server of the router in this container says that it is well.
import { request } from 'node:https'

// The certificate names the router, not this loopback address, and nothing is sent that anybody could use.
const options = { rejectUnauthorized: false, timeout: 4000 }
const port = process.env.ROUTER_HEALTH_PORT ?? '1780'
const call = request(`https://127.0.0.1:${port}/health-checks`, options, (answer) => {
  let told = ''
  answer.setEncoding('utf8')
  answer.on('data', (chunk) => (told += chunk))
  answer.on('end', () => {
    process.exitCode = JSON.parse(told).data.healthy === true ? 0 : 1
  })
})
call.on('timeout', () => call.destroy(new Error('no answer in time')))
call.on('error', (error) => {
  console.error(error.message)
  process.exitCode = 1
})
call.end()
