/**
 * What we use of undici. Its index also evaluates fetch, WebSocket, caches and mocks, which takes 30 ms at
 * each start. The methods of a dispatcher are put on it as there (undici/index.js).
 */
import api from 'undici/lib/api/index.js';
import Agent from 'undici/lib/dispatcher/agent.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import ProxyAgent from 'undici/lib/dispatcher/proxy-agent.js';
import Socks5ProxyAgent from 'undici/lib/dispatcher/socks5-proxy-agent.js';

Object.assign(Dispatcher.prototype, api);

export { Agent, type Dispatcher, ProxyAgent, Socks5ProxyAgent };
