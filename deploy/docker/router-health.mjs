// Exits with 0 if the health server of the router in this container reports that the router is healthy.
import { request } from 'node:https'

// The certificate contains the router's name, not this loopback address. It is not verified, because the request contains no secret.
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
