import { type Command, Option } from 'commander'

import { LOG_LEVELS } from '../../config/controller/options.ts'
import type { RunTunnelOptions } from './run.ts'

/** The `tunnel` commands. Their code is loaded when one of them runs. */
export function addTunnelCommands(program: Command): void {
  const tunnel = program
    .command('tunnel')
    .description('serve an enrolled identity on a host without a router')
  tunnel
    .command('run')
    .requiredOption('--identity <file...>', 'identity file, as identity enroll --out writes it')
    .addOption(
      new Option('--mode <mode>', 'default: proxy with --proxy, else host').choices([
        'host',
        'proxy',
        'tproxy',
      ]),
    )
    .option('--proxy <service...>', 'offer a service at a port: SERVICE:PORT or SERVICE:PORT:udp')
    .option('--bind <address>', 'IPv4 address of these ports; 0.0.0.0 for all', '127.0.0.1')
    .option('--resolver <url>', 'mode tproxy: address of its name server', 'udp://127.0.0.1:53')
    .option('--dns-upstream <server...>', 'mode tproxy: name servers asked for all other names')
    .option('--dns-range <cidr>', 'mode tproxy: addresses given to names', '100.64.0.1/10')
    .option(
      '--extend',
      'renew the certificate of the identity at the start, although it is not due',
    )
    .option('--metrics <address>', 'serve metrics at PORT of 127.0.0.1, or at ADDRESS:PORT')
    .addOption(
      new Option('--log-level <level>', 'minimum severity of log lines')
        .choices(LOG_LEVELS)
        .default('info'),
    )
    .description('host and offer the services of an identity; SIGTERM or ^C stops it')
    .addHelpText(
      'after',
      `
Logs in at the controllers by the certificate of the identity, connects to its edge routers, and follows its services as
policies change. In every mode it hosts the services that the identity may bind and that have a config host.v1 or
host.v2. Mode proxy offers services that it may dial at ports of this host, of --proxy or of their config proxy.v1. Mode
tproxy takes over connections of this host to the addresses and names of their config intercept.v1; it needs Linux, ip
of iproute2 and CAP_NET_ADMIN. A controller or an edge router that is lost is replaced by another one.

When a third of its lifetime is left, the certificate of the identity is renewed with the same key and written to the
identity file, so this program must be able to write the file and its folder.

--metrics serves http://ADDRESS:PORT/metrics for Prometheus, without log-in and in plain text, to everyone who reaches
the address: name a private one that only the monitoring system reaches.

Examples:
  flotilla tunnel run --identity laptop.json --proxy web:8080
  flotilla tunnel run --identity laptop.json --proxy web:8080 dns:5300:udp
  flotilla tunnel run --identity server.json --metrics 9101
  sudo flotilla tunnel run --identity laptop.json --mode tproxy`,
    )
    .action(async (options: RunTunnelOptions) => {
      const { runTunnel } = await import('./run.ts')
      await runTunnel(options)
    })
}
